package architecture_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	root   = "../.."
	module = "github.com/arbor-control/arbor"

	// notStd stands for every package outside the standard library.
	notStd = "(not std)"
)

// A rule forbids imports. Paths that begin with ./ are in this module; a path
// stands for the package and for all below it.
type rule struct {
	in     string   // the folder that the rule is about
	except []string // folders in it that the rule is not about
	never  []string // must not be reached, through any chain of imports
	direct []string // must not be imported by name: for std, which everything reaches
	tests  []string // must not be imported by tests
	allow  []string // what of all these is fine
	apart  bool     // folders right below must not reach each other
	why    string
}

func (r rule) names() []string {
	return slices.Concat([]string{r.in}, r.except, r.never, r.direct, r.tests, r.allow)
}

// A graph holds packages by import path.
type graph map[string]listed

// listed is a package as `go list` knows it.
type listed struct {
	ImportPath                         string
	Name                               string
	Imports, TestImports, XTestImports []string
}

// check returns a sentence per violation, in order.
func check(g graph, rules []rule) []string {
	var found []string
	for _, p := range slices.Sorted(maps.Keys(g)) {
		if !isOurs(short(p)) {
			continue
		}
		from := g.chains(p)
		for _, r := range rules {
			if within(p, r.in) && !anyWithin(p, r.except) {
				found = append(found, r.check(g[p], p, from)...)
			}
		}
	}

	return found
}

// check applies one rule to one package. from holds what the package reaches,
// and through whom.
func (r rule) check(l listed, p string, from map[string]string) []string {
	var found []string
	report := func(verb, name, through string) {
		found = append(found, short(p)+" "+verb+" "+short(name)+through+": "+r.why)
	}

	never := r.never
	if r.apart {
		never = append(slices.Clone(never), r.in)
	}
	for _, name := range never {
		// One witness is enough: who reaches a package of Kubernetes reaches
		// hundreds.
		if d := nearest(from, p, func(d string) bool { return r.forbids(p, d, name) }); d != "" {
			report("reaches", d, through(from, p, d))
		}
	}
	for _, d := range l.Imports {
		if anyWithin(d, r.direct) && !anyWithin(d, r.allow) {
			report("imports", d, "")
		}
	}
	for _, d := range slices.Concat(l.TestImports, l.XTestImports) {
		if d != p && anyWithin(d, r.tests) && !anyWithin(d, r.allow) {
			report("imports", d, " in a test")
		}
	}

	return found
}

func (r rule) forbids(p, d, name string) bool {
	if !within(d, name) || anyWithin(d, r.allow) {
		return false
	}

	// A package right in the folder puts together what is below it.
	return !r.apart || name != r.in || p != long(r.in) && child(p, r.in) != child(d, r.in)
}

// child is the folder right below in that p is in.
func child(p, in string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(p, long(in)+"/"), "/")

	return name
}

// chains returns everything that p reaches, each with the package that imports
// it on a shortest way from p.
func (g graph) chains(p string) map[string]string {
	from := map[string]string{}
	for queue := []string{p}; len(queue) > 0; queue = queue[1:] {
		for _, d := range g[queue[0]].Imports {
			if _, seen := from[d]; !seen && d != p {
				from[d] = queue[0]
				queue = append(queue, d)
			}
		}
	}

	return from
}

// nearest returns what p reaches in the fewest steps of what is bad.
func nearest(from map[string]string, p string, bad func(string) bool) string {
	best, steps := "", 0
	for _, d := range slices.Sorted(maps.Keys(from)) {
		if bad(d) {
			if n := len(way(from, p, d)); best == "" || n < steps {
				best, steps = d, n
			}
		}
	}

	return best
}

func through(from map[string]string, p, d string) string {
	if between := way(from, p, d); len(between) > 0 {
		return " through " + strings.Join(between, ", ")
	}

	return ""
}

// way returns the packages between p and d.
func way(from map[string]string, p, d string) []string {
	var between []string
	for at := from[d]; at != p; at = from[at] {
		between = append(between, short(at))
	}
	slices.Reverse(between)

	return between
}

// within says whether the package p is the one that name stands for, or below.
func within(p, name string) bool {
	if name == notStd {
		first, _, _ := strings.Cut(p, "/")

		return strings.Contains(first, ".")
	}
	name = long(name)

	return p == name || strings.HasPrefix(p, name+"/")
}

func anyWithin(p string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return within(p, name) })
}

func isOurs(name string) bool { return strings.HasPrefix(name, "./") }

// long turns ./engine into the import path.
func long(name string) string {
	if !isOurs(name) {
		return name
	}

	return strings.TrimSuffix(module+strings.TrimPrefix(name, "."), "/")
}

// short turns an import path of this module into ./engine.
func short(p string) string {
	if p == module {
		return "./"
	}
	if rest, ok := strings.CutPrefix(p, module+"/"); ok {
		return "./" + rest
	}

	return p
}

// load returns every package of the module and all that they import.
func load(t *testing.T) graph {
	t.Helper()
	touch(t)
	g, err := list()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	if _, ok := g[module]; !ok {
		t.Fatalf("%s is not in the list of packages", module)
	}

	return g
}

// list asks the go command, once.
var list = sync.OnceValues(func() (graph, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-deps", "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.String())
	}

	g := graph{}
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var l listed
		err := d.Decode(&l) //nolint:musttag // the go command writes Go's own names
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return nil, err
		}
		g[l.ImportPath] = l
	}
})

// touch looks into every folder with code, because the go command then knows
// that a passed test must run again when a file has changed. It does not see
// what the commands that a test runs have read.
func touch(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := len(d.Name()) > 1 && d.Name()[0] == '.' && d.Name() != ".."; d.IsDir() && (hidden || d.Name() == "bin") {
			return fs.SkipDir
		}

		return nil
	})
	if err != nil {
		t.Fatalf("cannot look into the folders: %v", err)
	}
}

func TestCheck(t *testing.T) {
	pure := rule{in: "./engine", never: []string{"k8s.io"}, direct: []string{"os"}, why: "pure"}
	g := func(lines ...string) graph {
		g := graph{}
		for _, line := range lines {
			p, imports, _ := strings.Cut(line, " -> ")
			l := g[long(p)]
			for d := range strings.FieldsSeq(imports) {
				l.Imports = append(l.Imports, long(d))
			}
			g[long(p)] = l
		}

		return g
	}

	cases := map[string]struct {
		reason string
		given  graph
		rule   rule
		want   []string
	}{
		"Clean": {
			reason: "Who keeps to the rule is not reported.",
			given:  g("./engine/a -> fmt example.com/b"), rule: pure,
		},
		"Imported": {
			reason: "An import is a way of one step.",
			given:  g("./engine/a -> k8s.io/api"), rule: pure,
			want: []string{"./engine/a reaches k8s.io/api: pure"},
		},
		"Reached": {
			reason: "A chain is reported with everybody on it.",
			given:  g("./engine/a -> ./engine/b", "./engine/b -> example.com/c", "example.com/c -> k8s.io/api"),
			rule:   rule{in: "./engine/a", never: pure.never, why: "pure"},
			want:   []string{"./engine/a reaches k8s.io/api through ./engine/b, example.com/c: pure"},
		},
		"Nearest": {
			reason: "Of many ways only a shortest is reported.",
			given:  g("./engine/a -> example.com/c k8s.io/b", "example.com/c -> k8s.io/a"), rule: pure,
			want: []string{"./engine/a reaches k8s.io/b: pure"},
		},
		"StdReached": {
			reason: "What is only forbidden by name may be reached.",
			given:  g("./engine/a -> fmt", "fmt -> os"), rule: pure,
		},
		"StdImported": {
			reason: "What is forbidden by name is reported.",
			given:  g("./engine/a -> os"), rule: pure,
			want: []string{"./engine/a imports os: pure"},
		},
		"Below": {
			reason: "A path stands for what is below it too.",
			given:  g("./engine/a/b -> os/exec"), rule: pure,
			want: []string{"./engine/a/b imports os/exec: pure"},
		},
		"OtherFolder": {
			reason: "A rule is about its folder, not about names that begin alike.",
			given:  g("./engines -> os k8s.io/api", "./engine -> osx k8s.iox"), rule: pure,
		},
		"Except": {
			reason: "An exception is not checked, its neighbours are.",
			given:  g("./engine/a -> k8s.io/api", "./engine/b -> k8s.io/api"),
			rule:   rule{in: "./engine", except: []string{"./engine/a"}, never: pure.never, why: "pure"},
			want:   []string{"./engine/b reaches k8s.io/api: pure"},
		},
		"Allowed": {
			reason: "What is allowed may be reached, and hides nothing behind it.",
			given:  g("./engine/a -> k8s.io/api", "k8s.io/api -> k8s.io/client"),
			rule:   rule{in: "./engine", never: pure.never, allow: []string{"k8s.io/api"}, why: "pure"},
			want:   []string{"./engine/a reaches k8s.io/client through k8s.io/api: pure"},
		},
		"NotStd": {
			reason: "Packages of this module are outside std as well.",
			given:  g("./engine/a -> fmt ./engine/b"),
			rule:   rule{in: "./engine", never: []string{notStd}, why: "std only"},
			want:   []string{"./engine/a reaches ./engine/b: std only"},
		},
		"Apart": {
			reason: "Siblings stay apart; a package and those below it do not.",
			given:  g("./engine/a -> ./engine/a/x ./engine/b", "./engine/a/x -> ./engine/a"),
			rule:   rule{in: "./engine", apart: true, why: "apart"},
			want: []string{
				"./engine/a reaches ./engine/b: apart",
				"./engine/a/x reaches ./engine/b through ./engine/a: apart",
			},
		},
		"Tests": {
			reason: "Imports of tests of both kinds are seen, the tested package is not one.",
			given: graph{long("./a"): {
				TestImports:  []string{long("./cmd/x")},
				XTestImports: []string{long("./a"), long("./test/cluster"), long("./test/y")},
			}},
			rule: rule{in: "./", tests: []string{"./a", "./cmd", "./test"}, allow: []string{"./test/cluster"}, why: "ring"},
			want: []string{"./a imports ./cmd/x in a test: ring", "./a imports ./test/y in a test: ring"},
		},
		"Root": {
			reason: "The module's own package is in the module.",
			given:  g("./ -> ./cmd/x"),
			rule:   rule{in: "./", never: []string{"./cmd"}, why: "ring"},
			want:   []string{"./ reaches ./cmd/x: ring"},
		},
		"Others": {
			reason: "Packages of other modules may do what they like.",
			given:  g("example.com/a -> k8s.io/api os"), rule: pure,
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check(tc.given, []rule{tc.rule})); diff != "" {
				t.Errorf("%s\ncheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
