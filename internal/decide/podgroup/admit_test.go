package podgroup_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
)

func good() *v2alpha2.PodGroup { return group(top("master"), under("master", "workers")) }
func bad() *v2alpha2.PodGroup  { return group(top("Master"), under("Master", "Workers")) }

// with changes an object in place and returns it.
func with(pg *v2alpha2.PodGroup, change func(*v2alpha2.PodGroup)) *v2alpha2.PodGroup {
	change(pg)

	return pg
}

const storedBad = `spec.subGroups[0].name: the stored subgroups break the rule and should be fixed: ` +
	`subgroup name "Master" must be lowercase (and 2 more)`

func TestAdmit(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1_700_000_000, 0))
	cases := map[string]struct {
		reason   string
		before   *v2alpha2.PodGroup
		after    *v2alpha2.PodGroup
		want     string
		warnings []string
	}{
		"CreateGood": {reason: "a good new object passes", after: good()},
		"CreateBad": {
			reason: "a bad new object is refused", after: bad(),
			want: `subgroup name "Master" must be lowercase`,
		},
		"Unchanged": {
			reason: "a bad object that stays as it is passes, and says so",
			before: bad(), after: bad(), warnings: []string{storedBad},
		},
		"UnchangedGood": {reason: "a good object that stays as it is passes in silence", before: good(), after: good()},
		"OneProblem": {
			reason: "one problem has no others beside it",
			before: group(top("A")), after: group(top("A")),
			warnings: []string{`spec.subGroups[0].name: the stored subgroups break the rule and should be fixed: ` +
				`subgroup name "A" must be lowercase`},
		},
		"Reordered": {
			reason: "another order is another list, and this one is bad",
			before: bad(), after: group(under("Master", "Workers"), top("Master")),
			want: `subgroup name "Workers" must be lowercase`,
		},
		"ReorderedGood": {
			reason: "a good list stays good in another order",
			before: good(), after: group(under("master", "workers"), top("master")),
		},
		"LabelsOnly": {
			reason: "labels have nothing to do with subgroups", before: bad(),
			after:    with(bad(), func(pg *v2alpha2.PodGroup) { pg.Labels = map[string]string{"a": "b"} }),
			warnings: []string{storedBad},
		},
		"StatusOnly": {
			reason: "nor has status", before: bad(),
			after:    with(bad(), func(pg *v2alpha2.PodGroup) { pg.Status.Running = 2 }),
			warnings: []string{storedBad},
		},
		"OtherSpec": {
			reason: "nor have other fields of the spec", before: bad(),
			after:    with(bad(), func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "high"; pg.Spec.MinMember = num(9) }),
			warnings: []string{storedBad},
		},
		"NilAndEmpty": {
			reason: "no list and an empty list are the same",
			before: group(), after: with(group(), func(pg *v2alpha2.PodGroup) {
				pg.Spec.SubGroups = []v2alpha2.SubGroup{}
			}),
		},
		"MinMemberOfSubGroup": {
			reason: "whoever touches the list must leave it good", before: bad(),
			after: with(bad(), func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups[0].MinMember = num(7) }),
			want:  `subgroup name "Master" must be lowercase`,
		},
		"Mended":  {reason: "a list may become good", before: bad(), after: good()},
		"Removed": {reason: "a bad list may go", before: bad(), after: group()},
		"HalfMended": {
			reason: "half way is not enough",
			before: bad(), after: group(top("master"), under("Master", "workers")),
			want: `parent of subgroup "workers": subgroup name "Master" must be lowercase`,
		},
		"MadeWorse": {
			reason: "a good list must not become bad",
			before: good(), after: bad(),
			want: `subgroup name "Master" must be lowercase`,
		},
		"EmptyParent": {
			reason: "no parent and an empty one differ",
			before: group(top("a")), after: group(under("", "a")),
			want: `parent  of a was not found`,
		},
		"Deletion": {
			reason: "an object that goes away loses its finalizer in silence",
			before: with(bad(), func(pg *v2alpha2.PodGroup) {
				pg.DeletionTimestamp, pg.Finalizers = &deleted, []string{"example.com/hold"}
			}),
			after: with(bad(), func(pg *v2alpha2.PodGroup) { pg.DeletionTimestamp = &deleted }),
		},
		"FinalizerOnly": {
			reason: "an object that stays may lose its finalizer too",
			before: with(bad(), func(pg *v2alpha2.PodGroup) { pg.Finalizers = []string{"example.com/hold"} }),
			after:  bad(), warnings: []string{storedBad},
		},
		"DeletionMadeWorse": {
			reason: "deletion is no excuse to write a bad list",
			before: with(good(), func(pg *v2alpha2.PodGroup) { pg.DeletionTimestamp = &deleted }),
			after:  with(bad(), func(pg *v2alpha2.PodGroup) { pg.DeletionTimestamp = &deleted }),
			want:   `subgroup name "Master" must be lowercase`,
		},
		"OldWarningsStaySilent": {
			reason: "a warning about the list comes with the list, not with every change",
			before: group(top("a_")), after: with(group(top("a_")), func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = num(1) }),
		},
		"NewWarning": {
			reason: "a changed list brings its warnings",
			before: group(top("a")), after: group(v2alpha2.SubGroup{Name: "a", MinSubGroup: num(2)}),
			warnings: []string{
				"spec.subGroups[0].minSubGroup: 2 can never be satisfied, because it has no subgroups directly below it",
			},
		},
		"MinSubGroupRaised": {
			reason: "so does the group's own minimum when it is what changes",
			before: good(), after: with(good(), func(pg *v2alpha2.PodGroup) { pg.Spec.MinSubGroup = num(5) }),
			warnings: []string{
				"spec.minSubGroup: 5 can never be satisfied, because it has only 1 subgroup directly below it",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := podgroup.Admit(tc.before, tc.after)
			if got.Message() != tc.want || got.Allowed() != (tc.want == "") {
				t.Errorf("%s\nAdmit(...) = %q, allowed %t, want %q", tc.reason, got.Message(), got.Allowed(), tc.want)
			}
			if diff := cmp.Diff(tc.warnings, got.WarningStrings()); diff != "" {
				t.Errorf("%s\nWarningStrings(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdmitSeesEveryField guards the handwritten comparison: whichever field of a bad subgroup
// changes, the list has changed and is rejected.
func TestAdmitSeesEveryField(t *testing.T) {
	fields := reflect.TypeFor[v2alpha2.SubGroup]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			before, after := group(v2alpha2.SubGroup{Name: "Bad"}), group(v2alpha2.SubGroup{Name: "Bad"})
			field := reflect.ValueOf(&after.Spec.SubGroups[0]).Elem().Field(i)
			switch field.Kind() {
			case reflect.String:
				field.SetString("Worse")
			case reflect.Pointer:
				field.Set(reflect.New(field.Type().Elem()))
			default:
				t.Fatalf("the test cannot set a %s", field.Kind())
			}
			if podgroup.Admit(before, after).Allowed() {
				t.Errorf("Admit(...) takes the list for unchanged")
			}
		})
	}
}
