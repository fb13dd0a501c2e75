package podgroup_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

func TestWarnings(t *testing.T) {
	long := strings.Repeat("w", 64)
	odd := "which must begin and end with a letter or digit, with only those and '-', '_', '.' between, " +
		"so no pod can join it"
	cases := map[string]struct {
		reason string
		pg     *v2alpha2.PodGroup
		want   []verdict.Warning
	}{
		"Longest": {reason: "63 characters fit into a label", pg: group(top(long[:63]))},
		"TooLong": {
			reason: "64 do not",
			pg:     group(top(long)),
			want: []verdict.Warning{{
				Field: "spec.subGroups[0].name",
				Message: `"` + long[:45] + `..." cannot be a label value, which may have at most 63 characters, ` +
					`so no pod can join it`,
			}},
		},
		"LongParent": {
			reason: "no pod joins a subgroup with children, so its name may be anything",
			pg:     group(top(long), under(long, "a")),
		},
		"Odd": {
			reason: "a label has letters, digits and three signs",
			pg:     group(top("a b"), top("a/b"), top("a_")),
			want: []verdict.Warning{
				{Field: "spec.subGroups[0].name", Message: `"a b" cannot be a label value, ` + odd},
				{Field: "spec.subGroups[1].name", Message: `"a/b" cannot be a label value, ` + odd},
				{Field: "spec.subGroups[2].name", Message: `"a_" cannot be a label value, ` + odd},
			},
		},
		"MinSubGroup": {
			reason: "minimums are compared with direct children only, the group's first",
			pg: with(group(
				v2alpha2.SubGroup{Name: "a", MinSubGroup: num(3)}, under("a", "b"), under("a", "c"), under("b", "d"),
				v2alpha2.SubGroup{Name: "e", MinSubGroup: num(1)},
			), func(pg *v2alpha2.PodGroup) { pg.Spec.MinSubGroup = num(3) }),
			want: []verdict.Warning{
				{
					Field:   "spec.minSubGroup",
					Message: "3 can never be satisfied, because it has only 2 subgroups directly below it",
				},
				{
					Field:   "spec.subGroups[0].minSubGroup",
					Message: "3 can never be satisfied, because it has only 2 subgroups directly below it",
				},
				{
					Field:   "spec.subGroups[4].minSubGroup",
					Message: "1 can never be satisfied, because it has no subgroups directly below it",
				},
			},
		},
		"MinSubGroupReached": {
			reason: "as many as there are is well",
			pg: with(group(v2alpha2.SubGroup{Name: "a", MinSubGroup: num(1)}, under("a", "b")),
				func(pg *v2alpha2.PodGroup) { pg.Spec.MinSubGroup = num(1) }),
		},
		"MinSubGroupZero": {
			reason: "none of none is well",
			pg:     with(group(), func(pg *v2alpha2.PodGroup) { pg.Spec.MinSubGroup = num(0) }),
		},
		"NoSubGroups": {
			reason: "a group without subgroups has nothing to count",
			pg:     with(group(), func(pg *v2alpha2.PodGroup) { pg.Spec.MinSubGroup = num(1) }),
			want: []verdict.Warning{{
				Field: "spec.minSubGroup", Message: "1 asks for subgroups, but the group has none",
			}},
		},
		"CaseToBeMended": {
			reason: "children are counted as they will be when the case is mended",
			pg:     group(v2alpha2.SubGroup{Name: "Master", MinSubGroup: num(1)}, under("MASTER", "a"), top("")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, podgroup.Check(tc.pg).Warnings); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestVerdictJSON(t *testing.T) {
	v := podgroup.Check(group(under("", "a_")))
	got, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"problems":[{"reason":"ParentNotFound","field":"spec.subGroups[0].parent",` +
		`"message":"parent  of a_ was not found","fix":"remove the empty parent to put it under the group itself"}],` +
		`"warnings":[{"field":"spec.subGroups[0].name","message":"\"a_\" cannot be a label value, which must begin ` +
		`and end with a letter or digit, with only those and '-', '_', '.' between, so no pod can join it"}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("json.Marshal(verdict): -want, +got:\n%s", diff)
	}
}

// A warning is given for exactly the names that Kubernetes rejects as labels.
func FuzzLabelWarning(f *testing.F) {
	for _, s := range []string{"a", "-a", "a-", "a-b", "a.b", "a_b", "é", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		pg := &v2alpha2.PodGroup{Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: name}}}}
		v := podgroup.Check(pg)
		if refused := len(validation.IsValidLabelValue(name)) > 0; v.Allowed() && refused != (len(v.Warnings) > 0) {
			t.Errorf("%q as a label: refused %t, warnings %v", name, refused, v.Warnings)
		}
	})
}
