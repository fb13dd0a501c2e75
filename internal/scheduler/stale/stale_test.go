package stale

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

func TestStalenessAnnotation(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC).UnixNano()
	cases := map[string]struct {
		reason string
		memory map[string]gang.Memory
		want   string
	}{
		"Nothing": {"A healthy gang has no annotation.", nil, ""},
		"Broken": {
			"The clock is stored to the nanosecond.",
			map[string]gang.Memory{
				"":        {Met: true, SatisfiedChildren: 1, Since: since},
				"default": {Met: true, SatisfiedMin: 4, Since: since, Bound: 4},
			},
			`{"":{"children":1,"since":"2026-01-02T03:04:05.678901234Z"},"default":{"min":4,"since":"2026-01-02T03:04:05.678901234Z"}}`,
		},
		"Raised": {
			"Without a loss there is no clock.",
			map[string]gang.Memory{"r0": {Met: true, SatisfiedMin: 2, Bound: 2}},
			`{"r0":{"min":2}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := encodeStaleness(tc.memory)
			if err != nil || got != tc.want {
				t.Fatalf("%s\nencodeStaleness = %s, %v, want %s", tc.reason, got, err, tc.want)
			}
			back, err := decodeStaleness(got)
			if diff := cmp.Diff(tc.memory, back); diff != "" || err != nil {
				t.Errorf("%s\ndecodeStaleness: -want, +got:\n%s%v", tc.reason, diff, err)
			}
		})
	}
}

func TestStalenessAnnotationInvalid(t *testing.T) {
	cases := map[string]struct{ reason, text string }{
		"NotJSON":  {"It was edited by hand.", `{`},
		"Negative": {"No minimum is negative.", `{"":{"min":-1}}`},
		"Children": {"Nor is a number of subgroups.", `{"":{"children":-1}}`},
		"Ancient":  {"A clock that nobody started would be over at once.", `{"":{"min":1,"since":"0001-01-01T00:00:00Z"}}`},
		"Distant":  {"A clock that starts too late overflows.", `{"":{"min":1,"since":"9000-01-01T00:00:00Z"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if memory, err := decodeStaleness(tc.text); err == nil || memory != nil {
				t.Errorf("%s\ndecodeStaleness(%s) = %v, %v, want an error", tc.reason, tc.text, memory, err)
			}
		})
	}
}

func TestStatusMemory(t *testing.T) {
	scheduled := func(status metav1.ConditionStatus, generation int64) []v2alpha2.PodGroupCondition {
		return []v2alpha2.PodGroupCondition{{Type: v2alpha2.PodGroupScheduled, Status: status, ObservedGeneration: generation}}
	}
	subGroups := []v2alpha2.SubGroupStatus{
		{Name: "s", Placed: 3, Satisfied: true, MinSubGroup: new(int32(1))},
		{Name: "a", Placed: 3, Min: 2, Satisfied: true},
		{Name: "b", Placed: 1, Min: 2},
	}
	below := map[string]gang.Memory{"s": {Met: true, SatisfiedChildren: 1}, "a": {Met: true, SatisfiedMin: 2, Bound: 3}}
	with := func(root gang.Memory) map[string]gang.Memory {
		return map[string]gang.Memory{"": root, "s": below["s"], "a": below["a"]}
	}
	cases := map[string]struct {
		reason string
		status v2alpha2.PodGroupStatus
		want   map[string]gang.Memory
	}{
		"None": {"A group that Arbor has never seen has met nothing.", v2alpha2.PodGroupStatus{}, map[string]gang.Memory{}},
		"Scheduled": {
			"The minimum of the group was met, with the children that were satisfied.",
			v2alpha2.PodGroupStatus{SubGroups: subGroups, Conditions: scheduled(metav1.ConditionTrue, 7)},
			with(gang.Memory{Met: true, SatisfiedMin: 3, SatisfiedChildren: 1}),
		},
		"Edited": {
			"The minimum that was met before an edit is not known.",
			v2alpha2.PodGroupStatus{SubGroups: subGroups, Conditions: scheduled(metav1.ConditionTrue, 6)},
			with(gang.Memory{Met: true, SatisfiedChildren: 1}),
		},
		"NotScheduled": {
			"Subgroups may be satisfied although the group is not.",
			v2alpha2.PodGroupStatus{SubGroups: subGroups, Conditions: scheduled(metav1.ConditionFalse, 7)},
			below,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pg := &v2alpha2.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: "g", Generation: 7},
				Spec: v2alpha2.PodGroupSpec{MinMember: new(int32(3)), SubGroups: []v2alpha2.SubGroup{
					{Name: "s", MinSubGroup: new(int32(1))}, {Name: "a", Parent: new("s")}, {Name: "b", Parent: new("s")},
				}},
				Status: tc.status,
			}
			g, refusal := decide.Read(pg, nil, gang.Rules{})
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			if diff := cmp.Diff(tc.want, statusMemory(pg, g.Tree)); diff != "" {
				t.Errorf("%s\nstatusMemory: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// What is known of a group and what its annotation says become one.
func TestStalenessLoad(t *testing.T) {
	const text = `{"default":{"min":4,"since":"1970-01-01T00:00:10Z"}}`
	stored := gang.Memory{Met: true, SatisfiedMin: 4, Bound: 4, Since: 10e9}
	cases := map[string]struct {
		reason string
		known  observedGroup
		want   gang.Memory
	}{
		"Restart": {"The annotation is all that a new process has.", observedGroup{}, stored},
		"Own": {
			"What was written here is known, and may be out of date.",
			observedGroup{annotation: text, memory: map[string]gang.Memory{"default": {Met: true, SatisfiedMin: 4, Since: 30e9}}},
			gang.Memory{Met: true, SatisfiedMin: 4, Since: 30e9},
		},
		"OtherFirst": {
			"Two schedulers agree on the clock that was stored first.",
			observedGroup{memory: map[string]gang.Memory{"default": {Met: true, SatisfiedMin: 4, Since: 30e9, Bound: 3}}},
			gang.Memory{Met: true, SatisfiedMin: 4, Since: 10e9, Bound: 3},
		},
		"Healthy": {
			"A group that is not broken takes no clock from an annotation.",
			observedGroup{memory: map[string]gang.Memory{"default": {Met: true, SatisfiedMin: 4, Bound: 4}}},
			gang.Memory{Met: true, SatisfiedMin: 4, Bound: 4},
		},
		"NeverMet": {
			"What another scheduler has seen counts.",
			observedGroup{memory: map[string]gang.Memory{"default": {Bound: 2}}},
			stored,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pg := &v2alpha2.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: "g", Annotations: map[string]string{v2alpha2.StalenessAnnotation: text}},
				Spec:       v2alpha2.PodGroupSpec{MinMember: new(int32(4))},
			}
			g, refusal := decide.Read(pg, nil, gang.Rules{})
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			tc.known.load(t.Context(), g)
			if diff := cmp.Diff(tc.want, tc.known.memory["default"]); diff != "" {
				t.Errorf("%s\nload: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStaleGrace(t *testing.T) {
	cases := map[string]struct {
		reason string
		flag   time.Duration
		own    *v2alpha2.Duration
		want   time.Duration
	}{
		"Flag":      {"The flag is for groups that have no grace period of their own.", time.Minute, nil, time.Minute},
		"FlagZero":  {"For the flag, 0 means forever.", 0, nil, -1},
		"Own":       {"The group's own takes precedence.", time.Minute, &v2alpha2.Duration{Duration: time.Hour}, time.Hour},
		"OwnZero":   {"For the group, 0 means at once, as it does for KAI.", time.Minute, &v2alpha2.Duration{}, 0},
		"OwnNever":  {"A negative one means forever.", time.Minute, &v2alpha2.Duration{Duration: -time.Second}, -time.Second},
		"OwnBad":    {"An invalid one counts as absent.", time.Minute, &v2alpha2.Duration{Invalid: `"abc"`}, time.Minute},
		"OwnBeyond": {"So large a grace period is used as it is.", 0, &v2alpha2.Duration{Duration: math.MaxInt64}, math.MaxInt64},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := New(nil, nil, nil, tc.flag)
			pg := &v2alpha2.PodGroup{Spec: v2alpha2.PodGroupSpec{StalenessGracePeriod: tc.own}}
			if got := w.grace(pg); got != tc.want {
				t.Errorf("%s\ngrace = %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// Expectations add up until the group is observed, and belong to one PodGroup, not
// to the next one of that name.
func TestStalenessExpect(t *testing.T) {
	w := New(nil, nil, nil, 0)
	pg := &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "g", UID: "1"},
		Spec:       v2alpha2.PodGroupSpec{MinSubGroup: new(int32(1)), SubGroups: []v2alpha2.SubGroup{{Name: "r0"}, {Name: "r1"}}},
	}
	key := types.NamespacedName{Namespace: "n", Name: "g"}
	g, refusal := decide.Read(pg, nil, gang.Rules{})
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	placed, bound := gang.Report{Satisfied: true, New: 1, Min: 1}, gang.Report{Satisfied: true, Bound: 1, Min: 1}
	first := gang.Decision{Fits: true, Nodes: []gang.Report{{Satisfied: true, New: 1, MinChildren: 1}, placed, {}}}
	second := gang.Decision{Fits: true, Nodes: []gang.Report{{Satisfied: true, Bound: 1, New: 1, MinChildren: 1}, bound, placed}}
	want := map[string]gang.Memory{
		"": {Met: true, SatisfiedChildren: 1, Expected: true}, "r0": {Met: true, SatisfiedMin: 1, Expected: true}, "r1": {Met: true, SatisfiedMin: 1, Expected: true},
	}
	w.Expect(g, first)
	w.Expect(g, second)
	known, expected := w.group(key, "1")
	if diff := cmp.Diff(want, expected); diff != "" {
		t.Errorf("two decisions: -want, +got:\n%s", diff)
	}
	if _, again := w.group(key, "1"); again != nil {
		t.Errorf("after an observation %v is expected", again)
	}
	delete(expected, "r1")
	w.Expect(g, second)
	w.expectAgain(key, "1", expected)
	if _, expected = w.group(key, "1"); cmp.Diff(want, expected) != "" {
		t.Errorf("what could not be observed is not expected again, but %v", expected)
	}
	w.expectAgain(key, "1", expected)
	if other, expected := w.group(key, "2"); other == known || expected != nil {
		t.Errorf("of another group of the same name %v is expected", expected)
	}
}
