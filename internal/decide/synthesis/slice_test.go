package synthesis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/identity"
)

func manifest(name string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":"default"}}`, name)
}

// TestRequested has syntheses of all kinds drop an object, and carry over tombstones of
// earlier ones.
func TestRequested(t *testing.T) {
	current := &enov1.ResourceSlice{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
		{Manifest: manifest("dropped")},
		{Manifest: manifest("automatic"), Deleted: true},
		{Manifest: manifest("edited"), Deleted: true, Requested: true},
		{Manifest: manifest("back"), Deleted: true, Requested: true},
	}}}
	terminating := current.DeepCopy()
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	was := &enov1.Synthesis{UUID: "1", ObservedCompositionGeneration: 4, ResourceSlices: []*enov1.ResourceSliceRef{{Name: "s"}}}
	cases := map[string]struct {
		reason  string
		in      enov1.Synthesis
		current []*enov1.ResourceSlice
		want    string
	}{
		"Automatic":    {"Inputs or the Synthesizer have changed.", enov1.Synthesis{ObservedCompositionGeneration: 4}, []*enov1.ResourceSlice{current}, "edited"},
		"Edited":       {"The user asked for what this synthesis drops, not for what an earlier one dropped.", enov1.Synthesis{ObservedCompositionGeneration: 5}, []*enov1.ResourceSlice{current}, "dropped edited"},
		"Forced":       {"The user forced it.", enov1.Synthesis{ObservedCompositionGeneration: 4, Forced: true}, []*enov1.ResourceSlice{current}, "dropped edited"},
		"Repaired":     {"A slice is being deleted, so it was forced to repair that.", enov1.Synthesis{ObservedCompositionGeneration: 4, Forced: true}, []*enov1.ResourceSlice{terminating}, "edited"},
		"RolledBack":   {"The user chose the manifests.", enov1.Synthesis{ObservedCompositionGeneration: 4, RolledBackTo: "0"}, []*enov1.ResourceSlice{current}, "dropped automatic edited"},
		"EditedBroken": {"An edit is a request, whether or not a slice is lost.", enov1.Synthesis{ObservedCompositionGeneration: 5, Forced: true}, []*enov1.ResourceSlice{terminating}, "dropped edited"},
		"OtherProgram": {"The Synthesizer has changed, too, and may be why the object is dropped.", enov1.Synthesis{ObservedCompositionGeneration: 5, ObservedSynthesizerGeneration: 1}, []*enov1.ResourceSlice{current}, "edited"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			by := synthesis.RequestOf(&enov1.CompositionStatus{InFlightSynthesis: &tc.in, CurrentSynthesis: was}, tc.current)
			var got []string
			for _, m := range synthesis.Manifests([]string{manifest("back")}, tc.current, "2", by) {
				if m.Requested {
					got = append(got, identity.Read(m.Manifest).Name)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
	lost := synthesis.RequestOf(&enov1.CompositionStatus{InFlightSynthesis: &enov1.Synthesis{ObservedCompositionGeneration: 4, Forced: true}, CurrentSynthesis: was}, nil)
	if lost != synthesis.Automatic {
		t.Errorf("a slice is gone, and the synthesis that repairs it is request %d", lost)
	}
}

// TestRequestAfterFailures edits a composition whose syntheses then fail, and changes its
// Synthesizer before the first one succeeds: the user did not ask for what the new program
// drops. The next edit is a request again.
func TestRequestAfterFailures(t *testing.T) {
	program := synthesizer()
	c := composition()
	step := 0
	begin := func(want synthesis.Cause) {
		t.Helper()
		step++
		plan := synthesis.Schedule([]*enov1.Composition{c}, map[string]*enov1.Synthesizer{"s": program}, synthesis.Limits{Concurrency: 1}, epoch.Add(time.Duration(step)*time.Hour))
		if len(plan.Begin) != 1 || plan.Begin[0].Wish.Cause != want {
			t.Fatalf("step %d: begun are %v, want %s", step, starts(plan.Begin), want)
		}
		c.Status = synthesis.Begin(plan.Begin[0], fmt.Sprint("u", step), epoch.Add(time.Duration(step)*time.Hour))
	}
	request := func(reason string, want synthesis.Request) {
		t.Helper()
		if got := synthesis.RequestOf(&c.Status, make([]*enov1.ResourceSlice, len(c.Status.CurrentSynthesis.ResourceSlices))); got != want {
			t.Errorf("%s: the request is %d, want %d", reason, got, want)
		}
	}
	fail := func() {
		c.Status, _ = synthesis.Fail(&c.Status, c.Status.InFlightSynthesis.UUID, nil, epoch.Add(time.Duration(step)*time.Hour))
	}
	promote := func() {
		t.Helper()
		var ok bool
		d := synthesis.Done{UUID: c.Status.InFlightSynthesis.UUID, BasedOn: c.Status.CurrentSynthesis.UUID, Inputs: c.Status.InputRevisions}
		if c.Status, ok = synthesis.Promote(&c.Status, d, epoch.Add(time.Duration(step)*time.Hour)); !ok {
			t.Fatalf("step %d: it is not promoted", step)
		}
	}

	c.Generation++
	begin(synthesis.CompositionModified)
	request("edited", synthesis.Edited)
	fail()
	begin(synthesis.Retry)
	request("edited and tried again", synthesis.Edited)
	fail()
	program.Generation++
	begin(synthesis.SynthesizerModified)
	request("another program since the edit", synthesis.Automatic)
	fail()
	begin(synthesis.Retry)
	request("another program, tried again", synthesis.Automatic)
	promote()
	c.Generation++
	begin(synthesis.CompositionModified)
	request("edited again", synthesis.Edited)
	promote()

	// A rollback has the generation of the program that did not make its manifests.
	c.Annotations[enov1.AnnotationRollback] = c.Status.PreviousSynthesis.UUID
	begin(synthesis.RollBack)
	request("rolled back", synthesis.RolledBack)
	promote()
	delete(c.Annotations, enov1.AnnotationRollback)
	c.Generation++
	begin(synthesis.Resumed)
	request("edited while rolled back", synthesis.Automatic)
}

func TestManifests(t *testing.T) {
	const patch = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"p"}}`
	current := &enov1.ResourceSlice{
		Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
			{Manifest: manifest("kept")},
			{Manifest: manifest("dropped")},
			{Manifest: patch},
			{Manifest: manifest("dying"), Deleted: true, DroppedBy: "1"},
			{Manifest: manifest("dead"), Deleted: true, DroppedBy: "1"},
			{Manifest: manifest("back"), Deleted: true, DroppedBy: "1"},
			{Manifest: manifest("unseen"), Deleted: true},
		}},
		Status: enov1.ResourceSliceStatus{Resources: []enov1.ResourceState{{}, {Deleted: true}, {}, {Reconciled: true}, {Deleted: true}, {}}},
	}
	got := synthesis.Manifests([]string{manifest("back"), strings.Replace(manifest("kept"), "apps/v1", "apps/v2", 1)}, []*enov1.ResourceSlice{current}, "2", synthesis.Automatic)
	want := []enov1.Manifest{
		// No tombstone any more, and another version of the same.
		{Manifest: manifest("back")},
		{Manifest: strings.Replace(manifest("kept"), "apps/v1", "apps/v2", 1)},
		{Manifest: manifest("dropped"), Deleted: true, DroppedBy: "2"},
		// They stay what they were, also one of a release that did not record it.
		{Manifest: manifest("dying"), Deleted: true, DroppedBy: "1"},
		{Manifest: manifest("unseen"), Deleted: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{manifest("kept"), manifest("dropped"), patch}, synthesis.Copied([]*enov1.ResourceSlice{current})); diff != "" {
		t.Errorf("tombstones are not copied: %s", diff)
	}
}

// TestBecomesPatch has a manifest replaced by a Patch of the same object.
func TestBecomesPatch(t *testing.T) {
	const patch = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"one","namespace":"default"},"patch":{"apiVersion":"apps/v1","kind":"Deployment"}}`
	current := &enov1.ResourceSlice{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{{Manifest: manifest("one")}, {Manifest: manifest("two")}}}}
	want := []enov1.Manifest{{Manifest: patch}, {Manifest: manifest("two"), Deleted: true, DroppedBy: "2"}}
	if diff := cmp.Diff(want, synthesis.Manifests([]string{patch}, []*enov1.ResourceSlice{current}, "2", synthesis.Automatic)); diff != "" {
		t.Error(diff)
	}
}

// TestCutMany has more manifests than the status of a slice has room for.
func TestCutMany(t *testing.T) {
	var sizes []int
	for _, cut := range synthesis.Cut(make([]enov1.Manifest, 1201)) {
		sizes = append(sizes, len(cut))
	}
	if diff := cmp.Diff([]int{500, 500, 201}, sizes); diff != "" {
		t.Error(diff)
	}
}

// TestCutStored has manifests whose characters take six bytes each when they are stored.
func TestCutStored(t *testing.T) {
	m := enov1.Manifest{Manifest: `{"kind":"A","metadata":{"name":"a"},"x":"` + strings.Repeat("<", 100<<10) + `"}`}
	small := enov1.Manifest{Manifest: `{"kind":"B","metadata":{"name":"b"}}`}
	if got := synthesis.Cut([]enov1.Manifest{m, small, m}); len(got) != 2 || len(got[0]) != 2 {
		t.Errorf("there are %d slices: the two large manifests do not fit into one", len(got))
	}
	if ref, size := synthesis.Largest([]enov1.Manifest{small, m, small}); ref.String() != "A a" || size < 600<<10 {
		t.Errorf("the largest is %s with %d bytes", ref, size)
	}
}

func TestCut(t *testing.T) {
	const most = 512 << 10
	cases := map[string]struct {
		reason string
		sizes  []int
		want   [][]int
	}{
		"None":  {"Nothing needs no slice.", nil, nil},
		"Few":   {"What fits goes together.", []int{1, most - 1}, [][]int{{1, most - 1}}},
		"Over":  {"One byte too many.", []int{1, most}, [][]int{{1}, {most}}},
		"Large": {"A slice has more only if one manifest has.", []int{1, most + 1, 1}, [][]int{{1}, {most + 1}, {1}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []enov1.Manifest
			for _, n := range tc.sizes {
				all = append(all, enov1.Manifest{Manifest: strings.Repeat("x", n)})
			}
			var got [][]int
			for _, cut := range synthesis.Cut(all) {
				var sizes []int
				for _, m := range cut {
					sizes = append(sizes, len(m.Manifest))
				}
				got = append(got, sizes)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
