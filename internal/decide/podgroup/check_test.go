package podgroup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

func num(n int32) *int32 { return &n }

// top is a subgroup directly under the group, under one below another.
func top(name string) v2alpha2.SubGroup { return v2alpha2.SubGroup{Name: name, MinMember: num(1)} }

func under(parent, name string) v2alpha2.SubGroup {
	return v2alpha2.SubGroup{Name: name, Parent: &parent, MinMember: num(4)}
}

func group(groups ...v2alpha2.SubGroup) *v2alpha2.PodGroup {
	return &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "training-job", Generation: 3},
		Spec:       v2alpha2.PodGroupSpec{MinMember: num(2), SubGroups: groups},
	}
}

// TestCheckMessage pins the messages of rejections, which are a contract.
func TestCheckMessage(t *testing.T) {
	cases := map[string]struct {
		reason string
		pg     *v2alpha2.PodGroup
		want   string
	}{
		"NoSubGroups":   {reason: "a plain gang is good", pg: group()},
		"LowercaseName": {reason: "lower case is good", pg: group(top("master"), under("master", "workers"))},
		"Siblings": {
			reason: "siblings are good",
			pg:     group(top("master"), under("master", "worker-1"), under("master", "worker-2")),
		},
		"Numbers": {reason: "digits have no case", pg: group(top("replica-1"), top("replica-2"))},
		"TwoTrees": {
			reason: "several trees are good",
			pg: group(top("decode"), under("decode", "decode-workers"), under("decode", "decode-leaders"),
				top("prefill"), under("prefill", "prefill-workers")),
		},
		"UppercaseName": {
			reason: "a name must be lower case",
			pg:     group(top("Master"), under("master", "workers")),
			want:   `subgroup name "Master" must be lowercase`,
		},
		"UppercaseParent": {
			reason: "a parent must be lower case",
			pg:     group(top("master"), under("Master", "workers")),
			want:   `parent of subgroup "workers": subgroup name "Master" must be lowercase`,
		},
		"CamelCase": {
			reason: "the first of several is the message",
			pg:     group(top("dataLoader"), top("modelTrainer"), top("resultWriter")),
			want:   `subgroup name "dataLoader" must be lowercase`,
		},
		"Duplicate": {
			reason: "a name must be unique",
			pg:     group(top("workers"), top("workers")),
			want:   `duplicate subgroup name workers`,
		},
		"MissingParent": {
			reason: "a parent must exist",
			pg:     group(under("master", "workers")),
			want:   `parent master of workers was not found`,
		},
		"Cycle": {
			reason: "parents must not go round",
			pg:     group(under("b", "a"), under("a", "b")),
			want:   `cycle detected in subgroups: a -> b -> a`,
		},
		"EmptyName": {reason: "a name must be there", pg: group(top("")), want: `subgroup name must not be empty`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := podgroup.Check(tc.pg)
			if got.Message() != tc.want || got.Allowed() != (tc.want == "") {
				t.Errorf("%s\nCheck(...) = %q, allowed %t, want %q", tc.reason, got.Message(), got.Allowed(), tc.want)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		bad    bool
	}{
		"Lowercase":            {reason: "plain", name: "workers"},
		"LowercaseWithHyphens": {reason: "hyphens have no case", name: "decode-workers"},
		"LowercaseWithNumbers": {reason: "digits have no case", name: "worker-1"},
		"Uppercase":            {reason: "one letter is enough", name: "Workers", bad: true},
		"MixedCase":            {reason: "wherever it stands", name: "decodeWorkers", bad: true},
		"AllUppercase":         {reason: "or all of them", name: "WORKERS", bad: true},
		"UppercaseWithHyphens": {reason: "or some", name: "Decode-Workers", bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := ""
			if tc.bad {
				want = fmt.Sprintf("subgroup name %q must be lowercase", tc.name)
			}
			if got := podgroup.Check(group(top(tc.name))).Message(); got != want {
				t.Errorf("%s\nCheck(%q) = %q, want %q", tc.reason, tc.name, got, want)
			}
		})
	}
}

// TestCheckAll holds every field of every kind of problem.
func TestCheckAll(t *testing.T) {
	pg := group(top("a"), top(""), top("B"), under("C", "c"), top("a"), under("zebra", "e"))
	want := []verdict.Problem{
		{
			Reason: v2alpha2.ReasonNameEmpty, Field: "spec.subGroups[1].name",
			Message: "subgroup name must not be empty", Fix: "give it a name",
		},
		{
			Reason: v2alpha2.ReasonNameNotLowercase, Field: "spec.subGroups[2].name", Value: "B",
			Message: `subgroup name "B" must be lowercase`, Fix: `rename it to "b"`,
		},
		{
			Reason: v2alpha2.ReasonParentNotLowercase, Field: "spec.subGroups[3].parent", Value: "C",
			Message: `parent of subgroup "c": subgroup name "C" must be lowercase`, Fix: `write "c"`,
		},
		{
			Reason: v2alpha2.ReasonDuplicateName, Field: "spec.subGroups[4].name", Value: "a",
			Message: `duplicate subgroup name a`, Fix: `rename spec.subGroups[0] or spec.subGroups[4]`,
		},
		{
			Reason: v2alpha2.ReasonParentNotFound, Field: "spec.subGroups[5].parent", Value: "zebra",
			Message: `parent zebra of e was not found`, Fix: `add a subgroup named "zebra" or remove the parent`,
		},
		{
			Reason: v2alpha2.ReasonCycle, Field: "spec.subGroups[3].parent", Value: "C",
			Message: `cycle detected in subgroups: c -> c`, Fix: `remove the parent of one of them`,
		},
	}
	got := podgroup.Check(pg)
	if diff := cmp.Diff(want, got.Problems); diff != "" {
		t.Errorf("Check(...): -want, +got:\n%s", diff)
	}
	if got.Reason() != v2alpha2.ReasonNameEmpty {
		t.Errorf("Reason() = %q, want the first problem's", got.Reason())
	}
}

func TestAcceptedShapes(t *testing.T) {
	cases := map[string]struct {
		reason string
		groups []v2alpha2.SubGroup
	}{
		"ParentWithMinMember": {
			reason: "older releases took minMember on a parent",
			groups: []v2alpha2.SubGroup{{Name: "a", MinMember: num(3)}, under("a", "b")},
		},
		"ParentWithZero": {
			reason: "zero is such a number too",
			groups: []v2alpha2.SubGroup{{Name: "a", MinMember: num(0)}, under("a", "b")},
		},
		"NeitherMinimum": {reason: "both minimums may be absent", groups: []v2alpha2.SubGroup{{Name: "a"}}},
		"BothMinimums": {
			reason: "both minimums may be there",
			groups: []v2alpha2.SubGroup{{Name: "a", MinMember: num(1), MinSubGroup: num(1)}, under("a", "b")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(verdict.Verdict{}, podgroup.Check(group(tc.groups...))); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTree(t *testing.T) {
	pg := group(top("decode"), under("decode", "workers"))
	pg.Spec.MinSubGroup = num(1)
	tree, err := podgroup.Tree(pg)
	if err != nil {
		t.Fatal(err)
	}
	leaf, ok := tree.Leaf("workers")
	if !ok || *tree.Node(leaf).MinMember != 4 || *tree.Node(tree.Root()).MinSubGroup != 1 {
		t.Errorf("Tree(...) lost a minimum on the way")
	}

	_, err = podgroup.Tree(group(top("Workers"), under("Workers", "leaf")))
	var unusable *podtree.Unusable
	if !errors.As(err, &unusable) || unusable.SubGroup != "leaf" {
		t.Fatalf("Tree(...) = %v, want an Unusable about leaf", err)
	}
	if want := "cannot build the tree of PodGroup default/training-job: "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Tree(...) = %v, want it to begin with %q", err, want)
	}
}

// TestManyProblems keeps advice cheap: what is searched for is bounded, what
// is reported is not.
func TestManyProblems(t *testing.T) {
	const n = 2000
	groups := make([]v2alpha2.SubGroup, n)
	for i := range groups {
		groups[i] = under(fmt.Sprintf("workgroup-%dx", i), fmt.Sprintf("workgroup-%d", i))
	}
	got := podgroup.Check(group(groups...))
	guesses := 0
	for _, p := range got.Problems {
		if strings.HasPrefix(p.Fix, "did you mean") {
			guesses++
		}
	}
	if len(got.Problems) != n || guesses != 8 {
		t.Errorf("Check(...): %d problems with %d guesses, want %d with 8", len(got.Problems), guesses, n)
	}
}
