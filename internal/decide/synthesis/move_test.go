package synthesis_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
)

// sliceOf is a slice with manifests.
func sliceOf(name, uuid string, manifests ...enov1.Manifest) *enov1.ResourceSlice {
	return &enov1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       enov1.ResourceSliceSpec{SynthesisUUID: uuid, Resources: manifests},
	}
}

func refs(names ...string) []*enov1.ResourceSliceRef {
	var all []*enov1.ResourceSliceRef
	for _, n := range names {
		all = append(all, &enov1.ResourceSliceRef{Name: n})
	}

	return all
}

func TestUnchanged(t *testing.T) {
	a, b := enov1.Manifest{Manifest: manifest("a")}, enov1.Manifest{Manifest: manifest("b")}
	tombstone := enov1.Manifest{Manifest: manifest("c"), Deleted: true}
	both := []*enov1.ResourceSlice{sliceOf("1", "now", a), sliceOf("2", "now", b)}
	deleted := sliceOf("2", "now", b)
	deleted.DeletionTimestamp = after(0)
	cases := map[string]struct {
		reason  string
		fresh   []string
		current []*enov1.ResourceSlice
		change  func(*enov1.CompositionStatus)
		want    bool
	}{
		"Equal":      {"The same manifests in the same order.", []string{a.Manifest, b.Manifest}, []*enov1.ResourceSlice{sliceOf("1", "now", a), sliceOf("2", "now", b)}, nil, true},
		"Tombstones": {"What the current one deletes, it goes on to delete.", []string{a.Manifest, b.Manifest}, []*enov1.ResourceSlice{sliceOf("1", "now", a, b), sliceOf("2", "now", tombstone)}, nil, true},
		"Empty":      {"Nothing is equal to nothing.", nil, []*enov1.ResourceSlice{sliceOf("1", "now", tombstone), sliceOf("2", "now", tombstone)}, nil, true},
		"Order":      {"The order of Patches counts.", []string{b.Manifest, a.Manifest}, []*enov1.ResourceSlice{sliceOf("1", "now", a), sliceOf("2", "now", b)}, nil, false},
		"Fewer":      {"A manifest is gone.", []string{a.Manifest}, []*enov1.ResourceSlice{sliceOf("1", "now", a), sliceOf("2", "now", b)}, nil, false},
		"Returns":    {"What was deleted is back.", []string{a.Manifest, tombstone.Manifest}, []*enov1.ResourceSlice{sliceOf("1", "now", a), sliceOf("2", "now", tombstone)}, nil, false},
		"Lost":       {"A lost slice is written again.", []string{a.Manifest}, []*enov1.ResourceSlice{sliceOf("1", "now", a)}, nil, false},
		"Deleted":    {"So is one that is being deleted.", []string{a.Manifest, b.Manifest}, []*enov1.ResourceSlice{sliceOf("1", "now", a), deleted}, nil, false},
		"Forced":     {"Force delivers everything again.", []string{a.Manifest, b.Manifest}, both, func(st *enov1.CompositionStatus) { st.InFlightSynthesis.Forced = true }, false},
		"Rollback":   {"A rollback that was asked for is in the history.", []string{a.Manifest, b.Manifest}, both, func(st *enov1.CompositionStatus) { st.InFlightSynthesis.RolledBackTo = "old" }, false},
		"First":      {"There is nothing to take over.", nil, nil, func(st *enov1.CompositionStatus) { st.CurrentSynthesis = nil }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			st := &enov1.CompositionStatus{
				CurrentSynthesis:  &enov1.Synthesis{UUID: "now", ResourceSlices: refs("1", "2")},
				InFlightSynthesis: &enov1.Synthesis{UUID: "next"},
			}
			if tc.change != nil {
				tc.change(st)
			}
			if got := synthesis.Unchanged(st, tc.fresh, tc.current); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}

func TestPromote(t *testing.T) {
	status := func() *enov1.CompositionStatus {
		return &enov1.CompositionStatus{
			InFlightSynthesis: &enov1.Synthesis{UUID: "next", ObservedCompositionGeneration: 2, ObservedSynthesizerGeneration: 5},
			CurrentSynthesis:  &enov1.Synthesis{UUID: "now", ObservedCompositionGeneration: 1, Reconciled: after(-9), Ready: after(-8), ResourceSlices: refs("a"), Results: []enov1.Result{{Message: "old"}}},
			PreviousSynthesis: &enov1.Synthesis{UUID: "1"},
			History:           []enov1.Synthesis{{UUID: "2"}, {UUID: "3"}},
		}
	}
	inputs, results := []enov1.InputRevisions{{Key: "in", ResourceVersion: "7"}}, []enov1.Result{{Message: "new"}}
	base := synthesis.Done{UUID: "next", BasedOn: "now", Slices: []*enov1.ResourceSliceRef{{Name: "b", Digest: "sha256:b"}}, Inputs: inputs, Results: results, HistoryLimit: 5}
	full := func(history ...enov1.Synthesis) *enov1.CompositionStatus {
		return &enov1.CompositionStatus{
			CurrentSynthesis: &enov1.Synthesis{
				UUID: "next", ObservedCompositionGeneration: 2, ObservedSynthesizerGeneration: 5, Synthesized: after(0),
				ResourceSlices: []*enov1.ResourceSliceRef{{Name: "b", Digest: "sha256:b"}}, InputRevisions: inputs, Results: results,
			},
			PreviousSynthesis: status().CurrentSynthesis, History: history,
		}
	}
	cases := map[string]struct {
		reason string
		change func(*synthesis.Done)
		want   *enov1.CompositionStatus // nil means that it is rejected
	}{
		"Full":  {"The current one becomes the previous one.", func(*synthesis.Done) {}, full(enov1.Synthesis{UUID: "1"}, enov1.Synthesis{UUID: "2"}, enov1.Synthesis{UUID: "3"})},
		"Limit": {"The oldest are dropped.", func(d *synthesis.Done) { d.HistoryLimit = 2 }, full(enov1.Synthesis{UUID: "1"}, enov1.Synthesis{UUID: "2"})},
		"None":  {"There may be no history.", func(d *synthesis.Done) { d.HistoryLimit = 0 }, full()},
		"Unchanged": {
			"Slices and states are taken over, and the current one is dropped.",
			func(d *synthesis.Done) { d.Unchanged, d.Slices = true, nil },
			&enov1.CompositionStatus{
				CurrentSynthesis: &enov1.Synthesis{
					UUID: "next", ObservedCompositionGeneration: 2, ObservedSynthesizerGeneration: 5, Synthesized: after(0), Reconciled: after(-9), Ready: after(-8),
					ResourceSlices: refs("a"), InputRevisions: inputs, Results: results,
				},
				PreviousSynthesis: &enov1.Synthesis{UUID: "1"},
				History:           []enov1.Synthesis{{UUID: "2"}, {UUID: "3"}},
			},
		},
		"Stale":    {"What it is equal to is not the current one any more.", func(d *synthesis.Done) { d.Unchanged, d.BasedOn = true, "1" }, nil},
		"Unwanted": {"Another one is in flight.", func(d *synthesis.Done) { d.UUID = "other" }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := base
			tc.change(&d)
			got, ok := synthesis.Promote(status(), d, epoch)
			want := tc.want
			if want == nil {
				want = status()
			}
			if diff := cmp.Diff(*want, got); diff != "" || ok != (tc.want != nil) {
				t.Errorf("%s\npromoted: %t\n%s", tc.reason, ok, diff)
			}
		})
	}
}

// A slice that was taken over has the uuid of a synthesis that is not in the status.
func TestKnows(t *testing.T) {
	st := &enov1.CompositionStatus{
		InFlightSynthesis: &enov1.Synthesis{UUID: "next"},
		CurrentSynthesis:  &enov1.Synthesis{UUID: "now", ResourceSlices: refs("taken-over")},
		History:           []enov1.Synthesis{{UUID: "old", ResourceSlices: refs("old-1")}},
	}
	for name, tc := range map[string]struct {
		reason string
		slice  *enov1.ResourceSlice
		want   bool
	}{
		"InFlight":  {"It is being written.", sliceOf("next-1", "next"), true},
		"TakenOver": {"The current synthesis names it.", sliceOf("taken-over", "dropped"), true},
		"History":   {"An earlier one names it.", sliceOf("old-1", "old"), true},
		"Unnamed":   {"It was written for the current one, which does not name it.", sliceOf("now-1", "now"), true},
		"Other":     {"It belongs to another composition.", sliceOf("other-1", "other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := synthesis.Knows(st, tc.slice); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}
