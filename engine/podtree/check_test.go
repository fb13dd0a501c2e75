package podtree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/podtree"
)

// top is a subgroup directly under the gang, under one below another.
func top(name string) podtree.SubGroup { return podtree.SubGroup{Name: name} }

func under(parent, name string) podtree.SubGroup {
	return podtree.SubGroup{Name: name, Parent: &parent}
}

func texts(found []podtree.Violation) []string {
	var all []string
	for _, v := range found {
		all = append(all, v.Error())
	}

	return all
}

type list = []podtree.SubGroup

func TestCheckTexts(t *testing.T) {
	cases := map[string]struct {
		reason string
		groups list
		want   []string
	}{
		"Nothing":  {reason: "a gang without subgroups is good", groups: nil},
		"OneLevel": {reason: "digits are not upper case letters", groups: list{top("replica-1"), top("replica-2")}},
		"TwoLevels": {
			reason: "siblings may share a parent",
			groups: list{top("master"), under("master", "worker-1"), under("master", "worker-2")},
		},
		"TwoTrees": {
			reason: "subgroups may form several trees",
			groups: list{
				top("decode"), under("decode", "decode-workers"), under("decode", "decode-leaders"),
				top("prefill"), under("prefill", "prefill-workers"),
			},
		},
		"ChildFirst": {
			reason: "a parent may come after its child in the list",
			groups: list{under("b", "c"), under("a", "b"), top("a")},
		},
		"UpperName": {
			reason: "fixing the name fixes the parent too, so only the name is reported",
			groups: list{top("Master"), under("master", "workers")},
			want:   []string{`subgroup name "Master" must be lowercase`},
		},
		"UpperParent": {
			reason: "the parent exists but for its case, so it is not reported as missing as well",
			groups: list{top("master"), under("Master", "workers")},
			want:   []string{`parent of subgroup "workers": subgroup name "Master" must be lowercase`},
		},
		"UpperParentNowhere": {
			reason: "a parent that would be missing in lower case too has two things wrong",
			groups: list{under("Master", "workers")},
			want: []string{
				`parent of subgroup "workers": subgroup name "Master" must be lowercase`,
				`parent Master of workers was not found`,
			},
		},
		"UpperBoth": {
			reason: "a subgroup's name comes before its parent",
			groups: list{top("Master"), under("Master", "Workers")},
			want: []string{
				`subgroup name "Master" must be lowercase`,
				`subgroup name "Workers" must be lowercase`,
				`parent of subgroup "Workers": subgroup name "Master" must be lowercase`,
			},
		},
		"CamelCase": {
			reason: "every name is reported, in list order",
			groups: list{top("dataLoader"), top("modelTrainer"), top("resultWriter")},
			want: []string{
				`subgroup name "dataLoader" must be lowercase`,
				`subgroup name "modelTrainer" must be lowercase`,
				`subgroup name "resultWriter" must be lowercase`,
			},
		},
		"UpperGreek": {
			reason: "case is not only a matter of ASCII",
			groups: list{top("Ω-team")},
			want:   []string{`subgroup name "Ω-team" must be lowercase`},
		},
		"TwoCasesOfOneName": {
			reason: "names that differ by case are two names",
			groups: list{top("workers"), top("Workers"), under("Workers", "leaf")},
			want: []string{
				`subgroup name "Workers" must be lowercase`,
				`parent of subgroup "leaf": subgroup name "Workers" must be lowercase`,
			},
		},
		"Duplicate": {
			reason: "the second and the third holder are reported, not the first",
			groups: list{top("workers"), top("workers"), top("workers")},
			want:   []string{`duplicate subgroup name workers`, `duplicate subgroup name workers`},
		},
		"DuplicateUpper": {
			reason: "case comes before duplicate",
			groups: list{top("W"), top("W")},
			want: []string{
				`subgroup name "W" must be lowercase`,
				`subgroup name "W" must be lowercase`,
				`duplicate subgroup name W`,
			},
		},
		"MissingParent": {
			reason: "a parent must be in the list",
			groups: list{under("master", "workers")},
			want:   []string{`parent master of workers was not found`},
		},
		"EmptyParent": {
			reason: "an empty parent is set, and names nothing",
			groups: list{under("", "x")},
			want:   []string{`parent  of x was not found`},
		},
		"EmptyName": {
			reason: "two empty names are not duplicates, and match no parent",
			groups: list{top(""), top(""), under("", "x")},
			want: []string{
				`subgroup name must not be empty`,
				`subgroup name must not be empty`,
				`parent  of x was not found`,
			},
		},
		"ListBeforeParents": {
			reason: "an entry late in the list comes before a missing parent early in it",
			groups: list{under("nope", "a"), top("b"), top("B"), top("b")},
			want: []string{
				`subgroup name "B" must be lowercase`,
				`duplicate subgroup name b`,
				`parent nope of a was not found`,
			},
		},
		"ParentsBeforeCycles": {
			reason: "a missing parent late in the list comes before a cycle early in it",
			groups: list{under("b", "a"), under("a", "b"), under("nope", "c")},
			want: []string{
				`parent nope of c was not found`,
				`cycle detected in subgroups: a -> b -> a`,
			},
		},
		"OwnParent": {
			reason: "the shortest cycle has one member",
			groups: list{under("a", "a")},
			want:   []string{`cycle detected in subgroups: a -> a`},
		},
		"BelowCycle": {
			reason: "a subgroup below a cycle is valid once the cycle is fixed",
			groups: list{under("b", "x"), under("c", "b"), under("b", "c"), under("x", "y")},
			want:   []string{`cycle detected in subgroups: b -> c -> b`},
		},
		"TwoCycles": {
			reason: "cycles are in order of their first members, not of the entries that lead to them",
			groups: list{under("d", "x"), under("b", "a"), under("a", "b"), under("d", "d")},
			want: []string{
				`cycle detected in subgroups: a -> b -> a`,
				`cycle detected in subgroups: d -> d`,
			},
		},
		"CycleAndCase": {
			reason: "a cycle that appears once the case is fixed is reported in the same check",
			groups: list{under("B", "a"), under("a", "b")},
			want: []string{
				`parent of subgroup "a": subgroup name "B" must be lowercase`,
				`cycle detected in subgroups: a -> b -> a`,
			},
		},
		"NotACycleByCase": {
			reason: "an exact name wins over one that differs by case",
			groups: list{top("A"), under("A", "a")},
			want: []string{
				`subgroup name "A" must be lowercase`,
				`parent of subgroup "a": subgroup name "A" must be lowercase`,
			},
		},
		"CycleThroughFirstHolder": {
			reason: "parents refer to the first holder of a name, so the second one closes no cycle",
			groups: list{top("a"), under("a", "b"), under("b", "a")},
			want:   []string{`duplicate subgroup name a`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(podtree.Check(tc.groups))); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckFields(t *testing.T) {
	cases := map[string]struct {
		reason string
		groups list
		want   []podtree.Violation
	}{
		"Good": {reason: "a good list has no violations, not an empty list of them", groups: list{top("a")}},
		"Entries": {
			reason: "each kind fills the fields that it is documented to",
			groups: list{top("a"), top(""), top("B"), under("C", "c"), top("a"), under("d", "e")},
			want: []podtree.Violation{
				{Kind: podtree.NameEmpty, Index: 1},
				{Kind: podtree.NameNotLowercase, Index: 2, Name: "B"},
				{Kind: podtree.ParentNotLowercase, Index: 3, Name: "c", Parent: "C"},
				{Kind: podtree.DuplicateName, Index: 4, Name: "a", First: 0},
				{Kind: podtree.ParentNotFound, Index: 5, Name: "e", Parent: "d"},
				{Kind: podtree.Cycle, Index: 3, Name: "c", Path: []string{"c", "c"}},
			},
		},
		"Cycle": {
			reason: "the path follows parents from the first member",
			groups: list{top("x"), under("c", "a"), under("a", "b"), under("b", "c")},
			want: []podtree.Violation{
				{Kind: podtree.Cycle, Index: 1, Name: "a", Path: []string{"a", "c", "b", "a"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, podtree.Check(tc.groups)); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNameCase(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		bad    bool
	}{
		"Lowercase":            {reason: "plain", name: "workers"},
		"LowercaseWithHyphens": {reason: "hyphens have no case", name: "decode-workers"},
		"LowercaseWithNumbers": {reason: "digits have no case", name: "worker-1"},
		"Odd":                  {reason: "only case is checked, not what a name is made of", name: "a_b/c d"},
		"Uppercase":            {reason: "one letter is enough", name: "Workers", bad: true},
		"MixedCase":            {reason: "wherever it stands", name: "decodeWorkers", bad: true},
		"AllUppercase":         {reason: "or all of them", name: "WORKERS", bad: true},
		"UppercaseWithHyphens": {reason: "or some", name: "Decode-Workers", bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if tc.bad {
				want = []string{fmt.Sprintf("subgroup name %q must be lowercase", tc.name)}
			}
			if diff := cmp.Diff(want, texts(podtree.Check(list{top(tc.name)}))); diff != "" {
				t.Errorf("%s\nCheck(%q): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
		})
	}
}

func TestLongCycleIsAbbreviated(t *testing.T) {
	cases := map[string]struct {
		reason  string
		members int
		want    string
	}{
		"Nine": {
			reason: "ten names are printed in full", members: 9,
			want: "n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> n8 -> n0",
		},
		"Ten": {
			reason: "eleven names are not", members: 10,
			want: "n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> ... -> n0",
		},
		"TenThousand": {
			reason: "the text does not grow with the cycle", members: 10_000,
			want: "n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> ... -> n0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			groups := make(list, tc.members)
			for i := range groups {
				groups[i] = under(fmt.Sprintf("n%d", (i+1)%tc.members), fmt.Sprintf("n%d", i))
			}
			got := podtree.Check(groups)
			if diff := cmp.Diff([]string{"cycle detected in subgroups: " + tc.want}, texts(got)); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
			if len(got[0].Path) != tc.members+1 {
				t.Errorf("Path has %d names, want all %d", len(got[0].Path), tc.members+1)
			}
		})
	}
}

func TestUnknownKindHasAText(t *testing.T) {
	got := podtree.Violation{Kind: "Odd", Name: "a"}.Error()
	if !strings.Contains(got, "Odd") || !strings.Contains(got, `"a"`) {
		t.Errorf("Error() = %q, want it to name the kind and the subgroup", got)
	}
}

func TestCheckAllocatesLittle(t *testing.T) {
	groups := deep(10_000)
	// The map, its parts, and two arrays: nothing per subgroup.
	if got := testing.AllocsPerRun(5, func() { podtree.Check(groups) }); got > 200 {
		t.Errorf("Check of 10,000 subgroups makes %.0f allocations, want at most 200", got)
	}
}
