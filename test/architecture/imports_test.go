package architecture

import (
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImports(t *testing.T) {
	for _, v := range check(load(t), rules) {
		t.Error(v)
	}
}

// TestPages fails when a page shows other rules than those that are tested.
func TestPages(t *testing.T) {
	for name := range pages {
		old, page, err := generated(root, name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(page, old); diff != "" {
			t.Errorf("%s is out of date, run make generate: -want, +got:\n%s", name, diff)
		}
	}
}

// TestRulesName fails when a rule names a package that does not exist: such a rule holds
// because of a typing error.
func TestRulesName(t *testing.T) {
	known := map[string]bool{notStd: true}
	for p := range load(t) {
		for p = short(p); !known[p] && p != "."; p = folder(p) {
			known[p] = true
		}
	}
	for i, r := range rules {
		for _, name := range slices.Concat([]string{r.in}, r.except, r.never, r.direct, r.tests, r.allow) {
			if !known[name] {
				t.Errorf("rule %d (%s) names %s, which does not exist", i, r.why, name)
			}
		}
	}
}

// folder returns the path above p, in the short form.
func folder(p string) string {
	up := path.Dir(p)
	if isOurs(p) && up != "." {
		return everything + up
	}

	return up
}

// TestRulesCatch breaks every rule in every way that it forbids.
func TestRulesCatch(t *testing.T) {
	const between = "example.com/between"
	for i, r := range rules {
		bad := example(r.in)
		broken := map[string]graph{}
		for _, name := range r.never {
			broken["reached "+name] = graph{bad: {Imports: []string{between}}, between: {Imports: []string{example(name)}}}
		}
		for _, name := range r.direct {
			broken["imported "+name] = graph{bad: {Imports: []string{example(name)}}}
		}
		for _, name := range r.tests {
			broken["tested "+name] = graph{bad: {TestImports: []string{example(name)}}}
		}
		if len(broken) == 0 {
			t.Errorf("rule %d (%s) forbids nothing", i, r.why)
		}

		for how, g := range broken {
			t.Run(fmt.Sprintf("%d/%s", i, how), func(t *testing.T) {
				if len(check(g, []rule{r})) == 0 {
					t.Errorf("%s is allowed in %s, but: %s", how, r.in, r.why)
				}
			})
		}
	}
}

// example returns a package that a name stands for.
func example(name string) string {
	if name == notStd {
		name = "example.com"
	}

	return long(name) + "/example"
}

func TestCheck(t *testing.T) {
	pure := rule{in: "./engine", except: []string{"./engine/x"}, never: []string{"k8s.io", "./engine"}, allow: []string{"k8s.io/api"}, why: "pure"}
	cases := map[string]struct {
		reason  string
		imports map[string][]string
		want    []string
	}{
		"Clean": {
			reason:  "Allowed packages, exceptions, other folders, the folder itself and names that begin alike are not reported.",
			imports: map[string][]string{"./engine/a": {"fmt", "k8s.io/api", "k8s.iox", "./engine/b"}, "./engine/x": {"k8s.io/client"}, "./engines": {"k8s.io/client"}},
		},
		"Chain": {
			reason:  "An allowed package hides nothing behind it, and the shortest chain is reported.",
			imports: map[string][]string{"./engine/a": {"k8s.io/api", "./b"}, "k8s.io/api": {"k8s.io/client"}, "./b": {"./c"}, "./c": {"k8s.io/client"}},
			want:    []string{"./engine/a reaches k8s.io/client through k8s.io/api: pure"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := graph{}
			for p, imports := range tc.imports {
				var l listed
				for _, d := range imports {
					l.Imports = append(l.Imports, long(d))
				}
				g[long(p)] = l
			}
			if diff := cmp.Diff(tc.want, check(g, []rule{pure})); diff != "" {
				t.Errorf("%s\ncheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
