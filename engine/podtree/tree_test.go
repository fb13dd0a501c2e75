package podtree_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/podtree"
)

func num(n int32) *int32 { return &n }

// draw lists the tree, one node per line, indented by its depth.
func draw(tree *podtree.Tree) []string {
	var lines []string
	for _, n := range tree.All() {
		lines = append(lines, strings.Repeat("  ", n.Depth)+n.Name)
	}

	return lines
}

func TestNew(t *testing.T) {
	cases := map[string]struct {
		reason string
		groups list
		want   []string
		err    *podtree.Unusable
	}{
		"NoSubGroups": {
			reason: "the gang's pods belong to one implicit leaf",
			want:   []string{"", "  default"},
		},
		"DepthFirst": {
			reason: "children follow their parents, siblings stand in list order",
			groups: list{under("b", "d"), top("a"), top("b"), under("a", "e"), under("b", "c"), under("d", "f")},
			want:   []string{"", "  a", "    e", "  b", "    d", "      f", "    c"},
		},
		"CaseA": {
			reason: "the parent Workers is looked up as workers, which the subgroup Workers is not",
			groups: list{top("Workers"), under("Workers", "leaf")},
			err: &podtree.Unusable{
				SubGroup: "leaf", Index: 1,
				Reason: `its parent "Workers" is looked up as "workers", which is not in the list`,
			},
		},
		"CaseB": {
			reason: "the parent Workers is looked up as workers",
			groups: list{top("workers"), under("Workers", "leaf")},
			want:   []string{"", "  workers", "    leaf"},
		},
		"CaseC": {
			reason: "the lower-cased name wins over the one that is written",
			groups: list{top("workers"), top("Workers"), under("Workers", "leaf")},
			want:   []string{"", "  workers", "    leaf", "  Workers"},
		},
		"CaseD": {
			reason: "names are taken as written",
			groups: list{top("Leaf")},
			want:   []string{"", "  Leaf"},
		},
		"CaseE": {
			reason: "a's parent A is looked up as a",
			groups: list{top("A"), under("A", "a")},
			err:    &podtree.Unusable{SubGroup: "a", Index: 1, Reason: "it is its own ancestor"},
		},
		"CaseF": {
			reason: "an empty parent is the gang itself",
			groups: list{under("", "a")},
			want:   []string{"", "  a"},
		},
		"UnknownParent": {
			reason: "a subgroup without its parent must not become one without a parent",
			groups: list{top("a"), under("nope", "b")},
			err:    &podtree.Unusable{SubGroup: "b", Index: 1, Reason: `its parent "nope" is not in the list`},
		},
		"Duplicate": {
			reason: "it would be unknown which of the two a pod belongs to",
			groups: list{top("x"), top("a"), top("a")},
			err:    &podtree.Unusable{SubGroup: "a", Index: 2, Reason: "subGroups[1] has the same name"},
		},
		"EmptyName": {
			reason: "the empty name is the root's",
			groups: list{top("a"), top("")},
			err:    &podtree.Unusable{Index: 1, Reason: "it has no name"},
		},
		"Cycle": {
			reason: "the first member of the cycle is named, not what hangs below it",
			groups: list{under("b", "x"), under("c", "b"), under("b", "c")},
			err:    &podtree.Unusable{SubGroup: "b", Index: 1, Reason: "it is its own ancestor"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree, err := podtree.New(podtree.Spec{SubGroups: tc.groups})
			if tc.err != nil {
				var got *podtree.Unusable
				if !errors.As(err, &got) {
					t.Fatalf("%s\nNew(...): %v, want an *Unusable", tc.reason, err)
				}
				if diff := cmp.Diff(tc.err, got); diff != "" {
					t.Errorf("%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
				}

				return
			}
			if err != nil {
				t.Fatalf("%s\nNew(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, draw(tree)); diff != "" {
				t.Errorf("%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnusableText(t *testing.T) {
	_, err := podtree.New(podtree.Spec{SubGroups: list{top("Workers"), under("Workers", "leaf")}})
	want := `cannot use subgroup "leaf" (subGroups[1]): ` +
		`its parent "Workers" is looked up as "workers", which is not in the list`
	if err == nil || err.Error() != want {
		t.Errorf("New(...) = %v, want %s", err, want)
	}
}

func TestTreeAccessors(t *testing.T) {
	groups := list{
		{Name: "decode", MinSubGroup: num(1)},
		under("decode", "workers"), under("decode", "leaders"), top("prefill"),
	}
	groups[1].MinMember = num(4)
	tree, err := podtree.New(podtree.Spec{MinMember: num(2), SubGroups: groups})
	if err != nil {
		t.Fatal(err)
	}
	*groups[1].MinMember = 99

	want := []podtree.Node{
		{Index: -1, Parent: -1, Children: []int{1, 4}, MinMember: num(2)},
		{Name: "decode", Index: 0, Parent: 0, Children: []int{2, 3}, Depth: 1, MinSubGroup: num(1)},
		{Name: "workers", Index: 1, Parent: 1, Children: []int{}, Depth: 2, MinMember: num(4)},
		{Name: "leaders", Index: 2, Parent: 1, Children: []int{}, Depth: 2},
		{Name: "prefill", Index: 3, Parent: 0, Children: []int{}, Depth: 1},
	}
	var got []podtree.Node
	for i := range tree.Len() {
		got = append(got, tree.Node(i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Node(i): a tree must not see later changes of its spec: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int{2, 3, 4}, tree.Leaves()); diff != "" {
		t.Errorf("Leaves(): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"decode", "leaders"}, tree.Path(3)); diff != "" {
		t.Errorf("Path(3): -want, +got:\n%s", diff)
	}
	if got := tree.Path(tree.Root()); len(got) != 0 {
		t.Errorf("Path(root) = %v, want none", got)
	}
	for i := range tree.All() {
		if i != tree.Root() {
			t.Errorf("All() begins with %d, want the root", i)
		}

		break
	}
}

func TestLeaf(t *testing.T) {
	groups := list{top("decode"), under("decode", "workers"), top("Odd")}
	cases := map[string]struct {
		reason string
		groups list
		name   string
		want   int
		ok     bool
	}{
		"Leaf":       {reason: "pods join a leaf by its name", groups: groups, name: "workers", want: 2, ok: true},
		"AsWritten":  {reason: "case counts", groups: groups, name: "Odd", want: 3, ok: true},
		"OtherCase":  {reason: "case counts", groups: groups, name: "odd"},
		"Inner":      {reason: "no pod belongs to a subgroup with children", groups: groups, name: "decode"},
		"Unknown":    {reason: "no such subgroup", groups: groups, name: "nope"},
		"Root":       {reason: "no pod belongs to the root", groups: groups, name: ""},
		"Implicit":   {reason: "a gang without subgroups has one leaf", name: podtree.DefaultLeaf, want: 1, ok: true},
		"NoImplicit": {reason: "a gang with subgroups has no implicit leaf", groups: groups, name: podtree.DefaultLeaf},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree, err := podtree.New(podtree.Spec{SubGroups: tc.groups})
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := tree.Leaf(tc.name); got != tc.want || ok != tc.ok {
				t.Errorf("%s\nLeaf(%q) = %d, %t, want %d, %t", tc.reason, tc.name, got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestImplicitLeaf(t *testing.T) {
	tree, err := podtree.New(podtree.Spec{MinMember: num(3)})
	if err != nil {
		t.Fatal(err)
	}
	want := podtree.Node{
		Name: podtree.DefaultLeaf, Index: -1, Parent: tree.Root(), Children: []int{}, Depth: 1, MinMember: num(3),
	}
	if diff := cmp.Diff(want, tree.Node(1)); diff != "" {
		t.Errorf("the implicit leaf needs what the gang needs: -want, +got:\n%s", diff)
	}
}

func TestRequiredChildren(t *testing.T) {
	cases := map[string]struct {
		reason string
		min    *int32
		want   int
	}{
		"Absent":   {reason: "absent means all", want: 2},
		"Some":     {reason: "as written", min: num(1), want: 1},
		"None":     {reason: "zero is a number too", min: num(0), want: 0},
		"TooMany":  {reason: "never cut down, because that would be a weaker gang", min: num(7), want: 7},
		"Negative": {reason: "a negative number counts as zero", min: num(-3), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree, err := podtree.New(podtree.Spec{MinSubGroup: tc.min, SubGroups: list{top("a"), top("b")}})
			if err != nil {
				t.Fatal(err)
			}
			if got := tree.RequiredChildren(tree.Root()); got != tc.want {
				t.Errorf("%s\nRequiredChildren(root) = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// veryDeep is more than a stack would hold.
var veryDeep = 1_000_000

func TestVeryDeep(t *testing.T) {
	depth := veryDeep
	groups := deep(depth)
	if got := podtree.Check(groups); got != nil {
		t.Fatalf("Check of a chain: %v, want nothing", got[0])
	}
	tree, err := podtree.New(podtree.Spec{SubGroups: groups})
	if err != nil {
		t.Fatal(err)
	}
	leaves := tree.Leaves()
	if len(leaves) != 1 || tree.Node(leaves[0]).Depth != depth {
		t.Errorf("a chain of %d has %d leaves, want one at the end", depth, len(leaves))
	}

	last := groups[depth-1].Name
	groups[0].Parent = &last
	if got := podtree.Check(groups); len(got) != 1 || got[0].Kind != podtree.Cycle {
		t.Errorf("Check of a ring of %d: %d violations, want one cycle", depth, len(got))
	}
}

// checkTree checks that New and Check agree about a list.
func checkTree(t *testing.T, groups list, found []podtree.Violation) {
	t.Helper()
	tree, err := podtree.New(podtree.Spec{SubGroups: groups})
	if err == nil {
		checkNodes(t, groups, tree)

		return
	}
	var u *podtree.Unusable
	if !errors.As(err, &u) || u.SubGroup != groups[u.Index].Name {
		t.Fatalf("New(%s): %v, want an *Unusable that names its subgroup", describe(groups), err)
	}
	if len(found) == 0 {
		t.Fatalf("New(%s): %v, but Check finds nothing", describe(groups), err)
	}
}

// checkNodes wants All to reach every subgroup once, below its parent.
func checkNodes(t *testing.T, groups list, tree *podtree.Tree) {
	t.Helper()
	seen := make([]int, tree.Len())
	for i, n := range tree.All() {
		seen[i]++
		if n.Index >= 0 && n.Name != groups[n.Index].Name {
			t.Fatalf("New(%s): node %d is %q, want %q", describe(groups), i, n.Name, groups[n.Index].Name)
		}
		if n.Parent >= 0 && !slices.Contains(tree.Node(n.Parent).Children, i) {
			t.Fatalf("New(%s): node %d is not among its parent's children", describe(groups), i)
		}
	}
	if want := max(2, len(groups)+1); tree.Len() != want || slices.Min(seen) != 1 || slices.Max(seen) != 1 {
		t.Fatalf("New(%s): All reaches the nodes %v times, want %d nodes once each", describe(groups), seen, want)
	}
}
