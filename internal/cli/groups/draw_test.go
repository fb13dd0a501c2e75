package groups

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show/grouptree"
)

func drawn(t *testing.T, obj map[string]any, depth int, s render.Style) string {
	t.Helper()

	pg, _ := podgroup.Decode(obj)

	var out bytes.Buffer
	if err := draw(&out, pg, grouptree.New(pg, podgroup.Check(pg)), depth, s); err != nil {
		t.Fatal(err)
	}

	return out.String()
}

func TestDraw(t *testing.T) {
	hierarchy := clitest.PodGroup("default", "inference-workload", "decode", "decode-workers<decode", "decode-leaders<decode", "prefill", "prefill-workers<prefill")
	minSubGroups := clitest.PodGroup("n", "g", "a", "b<a", "c<a")
	minSubGroups["spec"].(map[string]any)["minSubGroup"] = int64(2)
	minSubGroups["spec"].(map[string]any)["subGroups"].([]any)[0] = map[string]any{"name": "a", "minSubGroup": int64(1)}

	bare := map[string]any{"metadata": map[string]any{"name": "bare"}}
	nameless := map[string]any{"metadata": map[string]any{}}

	tests := map[string]struct {
		reason string
		obj    map[string]any
		depth  int
		style  render.Style
		want   string
	}{
		"Hierarchy": {
			reason: "children stand below their parents, minimums in a column",
			obj:    hierarchy, style: render.Style{Unicode: true},
			want: `
default/inference-workload  queue q, min 2 pods
├─ decode              min 1 pod
│  ├─ decode-workers   min 1 pod
│  └─ decode-leaders   min 1 pod
└─ prefill             min 1 pod
   └─ prefill-workers  min 1 pod
`,
		},
		"ASCII": {
			reason: "terminals without Unicode get plain lines",
			obj:    hierarchy,
			want: "\n" + `default/inference-workload  queue q, min 2 pods
|- decode              min 1 pod
|  |- decode-workers   min 1 pod
|  ` + "`" + `- decode-leaders   min 1 pod
` + "`" + `- prefill             min 1 pod
   ` + "`" + `- prefill-workers  min 1 pod
`,
		},
		"Depth": {
			reason: "what is too deep is counted",
			obj:    clitest.PodGroup("n", "g", "a", "b<a", "c<b", "d<b", "e"), depth: 1, style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
├─ a  min 1 pod
│  └─ … 3 more below
└─ e  min 1 pod
`,
		},
		"MinSubGroup": {
			reason: "minimums of subgroups count the children, and too large ones are marked on the group",
			obj:    minSubGroups, style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods, min 2 of 1 subgroup
! 2 can never be satisfied, because it has only 1 subgroup directly below it
└─ a     min 1 of 2 subgroups
   ├─ b  min 1 pod
   └─ c  min 1 pod
`,
		},
		"Bare":     {reason: "a group may say nothing", obj: bare, want: "\nbare\n"},
		"Nameless": {reason: "not even a name", obj: nameless, want: "\n(no name)\n"},
		"MixedCaseParent": {
			reason: "a parent is looked up in lower case, as the scheduler does",
			obj:    clitest.PodGroup("n", "g", "master", "workers<Master"), style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
└─ master        min 1 pod
   └─ ✗ workers  min 1 pod  parent of subgroup "workers": subgroup name "Master" must be lowercase (write "master")
`,
		},
		"MixedCaseName": {
			reason: "and then a name in mixed case is nobody's parent",
			obj:    clitest.PodGroup("n", "g", "Master", "workers<Master", "w1<workers", "w2<workers"), style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
└─ ✗ Master  min 1 pod  subgroup name "Master" must be lowercase (rename it to "master")
✗ workers    min 1 pod  parent "Master" is looked up as "master", and there is only "Master"
│  parent of subgroup "workers": subgroup name "Master" must be lowercase (write "master")
├─ w1        min 1 pod
└─ w2        min 1 pod
`,
		},
		"MissingParent": {
			reason: "a missing parent is said once, and leaves the rest standing",
			obj:    clitest.PodGroup("n", "g", "workers<master", "a"), style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
└─ a       min 1 pod
✗ workers  min 1 pod  parent master of workers was not found (add a subgroup named "master" or remove the parent)
`,
		},
		"Cycle": {
			reason: "a cycle is cut at its first member, with what hangs below",
			obj:    clitest.PodGroup("n", "g", "x<a", "a<c", "b<a", "c<b", "self<self"), style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
✗ a      min 1 pod  cycle detected in subgroups: a -> c -> b -> a (remove the parent of one of them)
├─ x     min 1 pod
└─ b     min 1 pod
   └─ c  min 1 pod
✗ self   min 1 pod  cycle detected in subgroups: self -> self (remove the parent of one of them)
`,
		},
		"CaseCycle": {
			reason: "a cycle that only the scheduler sees is told too",
			obj:    clitest.PodGroup("n", "g", "a<A", "A"), style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
└─ ✗ A  min 1 pod  subgroup name "A" must be lowercase (choose another name, because "a" belongs to spec.subGroups[0])
✗ a     min 1 pod  it is its own ancestor
   parent of subgroup "a": subgroup name "A" must be lowercase (write "a" if spec.subGroups[0] is meant, or the new name of spec.subGroups[1])
`,
		},
		"Duplicate": {
			reason: "children belong to the first of two with one name",
			obj:    clitest.PodGroup("n", "g", "a", "b<a", "a", ""), style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
├─ a            min 1 pod
│  └─ b         min 1 pod
├─ ✗ a          min 1 pod  duplicate subgroup name a (rename spec.subGroups[0] or spec.subGroups[2])
└─ ✗ (no name)  min 1 pod  subgroup name must not be empty (give it a name)
`,
		},
		"Warning": {
			reason: "a warning has its own mark, and long names do not push the column out",
			obj:    clitest.PodGroup("n", "g", "a_", strings.Repeat("x", 61)), style: render.Style{Unicode: true},
			want: `
n/g  queue q, min 2 pods
├─ ! a_  min 1 pod  "a_" cannot be a label value, which must begin and end with a letter or digit, with only those and '-', '_', '.' between, so no pod can join it
└─ ` + strings.Repeat("x", 61) + `  min 1 pod
`,
		},
		"Colour": {
			reason: "on a terminal what is wrong is red, and names cannot bring their own colours",
			obj:    clitest.PodGroup("n", "\x1b[1mg", "A"), style: render.Style{Colour: true},
			want: "\n\x1b[1mn/\\x1b[1mg\x1b[0m  queue q, min 2 pods\n" +
				"`- \x1b[31mx \x1b[0mA  min 1 pod  \x1b[31msubgroup name \"A\" must be lowercase (rename it to \"a\")\x1b[0m\n",
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), drawn(t, tc.obj, tc.depth, tc.style)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestForestIsTheTree compares the tree with the scheduler's tree on random
// lists, for those that make one.
func TestForestIsTheTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	trees := 0

	for range 2000 {
		pg := randomGroup(r)
		f := grouptree.New(pg, podgroup.Check(pg))

		tree, err := podgroup.Tree(pg)
		if (err == nil) != (len(f.Loose) == 0 && !hasDuplicates(pg)) {
			t.Fatalf("tree: %v, loose: %v, of %+v", err, f.Loose, pg.Spec.SubGroups)
		}

		if err != nil {
			continue
		}

		trees++

		for _, n := range tree.All() {
			if n.Index < 0 {
				continue
			}

			got := f.SubGroups[n.Index]
			if got.Depth != n.Depth || len(got.Children) != len(n.Children) {
				t.Fatalf("%s: depth %d and %d children, want %d and %d", n.Name, got.Depth, len(got.Children), n.Depth, len(n.Children))
			}
		}
	}

	if trees < 100 {
		t.Errorf("only %d lists made a tree", trees)
	}
}

func randomGroup(r *rand.Rand) *v2alpha2.PodGroup {
	pg := &v2alpha2.PodGroup{}

	for i := range r.IntN(7) {
		g := v2alpha2.SubGroup{Name: fmt.Sprintf("g%d", i)}
		if r.IntN(20) == 0 {
			g.Name = "g0"
		}

		if r.IntN(3) > 0 {
			parent := fmt.Sprintf("%s%d", []string{"g", "g", "G"}[r.IntN(3)], r.IntN(7))
			g.Parent = &parent
		}

		pg.Spec.SubGroups = append(pg.Spec.SubGroups, g)
	}

	return pg
}

func hasDuplicates(pg *v2alpha2.PodGroup) bool {
	seen := map[string]bool{}

	for _, g := range pg.Spec.SubGroups {
		if seen[g.Name] {
			return true
		}

		seen[g.Name] = true
	}

	return false
}

// TestForestHoldsEverything : every subgroup of any list is drawn once.
func TestForestHoldsEverything(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))

	for range 2000 {
		pg := randomGroup(r)
		f := grouptree.New(pg, podgroup.Check(pg))

		rows := 0
		d := &drawer{Walker: render.Walker{Glyphs: render.Style{}.Glyphs(), Tree: f.Tree}, tree: f}
		d.rows(func(row) { rows++ })

		if rows != len(pg.Spec.SubGroups) {
			t.Fatalf("%d rows for %+v", rows, pg.Spec.SubGroups)
		}
	}
}

// TestDrawChain draws a chain that is far too deep, and a ring.
func TestDrawChain(t *testing.T) {
	const n = 10_000

	chain, ring := []string{"g0"}, []string{fmt.Sprintf("g0<g%d", n-1)}
	for i := 1; i < n; i++ {
		link := fmt.Sprintf("g%d<g%d", i, i-1)
		chain, ring = append(chain, link), append(ring, link)
	}

	for name, groups := range map[string][]string{"Chain": chain, "Ring": ring} {
		t.Run(name, func(t *testing.T) {
			out := clitest.Lines(drawn(t, clitest.PodGroup("n", "g", groups...), render.DefaultDepth, render.Style{}))
			if got := out[len(out)-1]; len(out) != render.DefaultDepth+2 || !strings.HasSuffix(got, fmt.Sprintf("... %d more below", n-render.DefaultDepth)) {
				t.Errorf("%d lines, the last is %q", len(out), got)
			}
		})
	}
}

// FuzzDraw draws whatever a manifest holds, however wrong it is.
func FuzzDraw(f *testing.F) {
	for _, text := range []string{
		"", "a: [", clitest.PodGroupHead, clitest.PodGroupHead + "spec: {subGroups: [{name: a, parent: A}, {name: a}, 5, {name: [x]}]}", clitest.PodGroupHead + "---\n{}\n---\nkind: List\nitems: [1]\n",
		strings.Repeat("[", 100), "a: &a [*a]", clitest.PodGroupHead + "metadata: {}\nmetadata: 1\n", "\x00", clitest.PodGroupHead + "spec: {minMember: 1e99, preemptionDelay: {}}",
		clitest.PodGroupHead + "spec: {minMember: 1, subGroups: [{name: a}, {name: B, parent: a, minMember: x}]}",
		"kind: PodGroup\n---\n" + clitest.PodGroupHead + "spec: {a: 1, b: 2}\n---\n" + clitest.PodGroupHead + "status: {x: [1, {y: z}]}",
		"apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {labels: {a: 1, b: 2}, x: 1, y: {}}\nspec: []",
	} {
		f.Add([]byte(text))
	}

	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("there are no examples: ", err)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text []byte) {
		for _, d := range manifest.Parse("a.yaml", text).Documents {
			if podgroup.IsPodGroup(identity.RefOf(d.Object)) {
				drawn(t, d.Object, 5, render.Style{Unicode: true})
			}
		}
	})
}
