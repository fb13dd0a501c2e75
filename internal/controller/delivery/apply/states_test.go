package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// TestUnwrittenStates rebuilds a view while the states of its items wait to be written:
// what is stored in the slice is older, and does not count.
func TestUnwrittenStates(t *testing.T) {
	const hook = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"job","namespace":"n"},"patch":{"apiVersion":"batch/v1","kind":"Job","ops":[{"op":"add","path":"/metadata/deletionTimestamp","value":"now"}]}}`
	slices := []enov1.ResourceSlice{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"},
		Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
			{Manifest: hook},
			{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old","namespace":"n"}}`, Deleted: true},
			{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new","namespace":"n"}}`},
		}},
		Status: enov1.ResourceSliceStatus{Resources: make([]enov1.ResourceState, 3)},
	}}
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "s"}}}
	d, name := idleWorker(), client.ObjectKeyFromObject(c)
	rebuild := func() *model.Composition {
		v := d.NewView(c, slices)
		v.InheritFrom(d.View(name))
		d.swap(name, v)

		return v
	}
	states := func(v *model.Composition) []enov1.ResourceState { return v.States(v.Items[0].Slice) }
	now := d.Timestamp()
	ran := enov1.ResourceState{Reconciled: true, Deleted: true, Ready: &now}
	applied := enov1.ResourceState{Reconciled: true, Ready: &now}

	first := rebuild()
	first.Start()
	d.Settle(first, first.Items[0].Unpacked(), ran)
	d.Settle(first, first.Items[1].Unpacked(), ran)

	c.Annotations = map[string]string{enov1.AnnotationReconcileInterval: "1h"} // a setting has changed
	second := rebuild()
	var open []decide.Identity
	for _, it := range second.Start() {
		open = append(open, it.Identity)
	}
	if diff := cmp.Diff([]enov1.ResourceState{ran, ran, {}}, states(second)); diff != "" {
		t.Errorf("states that were not written yet are lost: -want, +got:\n%s", diff)
	}
	if !second.Ran(second.Items[0]) {
		t.Error("the Patch would run again")
	}
	for _, id := range open {
		if id.Name == "old" {
			t.Error("an object that is gone would be deleted again")
		}
	}

	// A worker has begun before the view was replaced.
	d.Settle(first, first.Items[2].Unpacked(), applied)
	if diff := cmp.Diff([]enov1.ResourceState{ran, ran, applied}, states(second)); diff != "" {
		t.Errorf("what a worker of the replaced view did is not known: -want, +got:\n%s", diff)
	}
	for _, u := range d.Status.Dirty {
		if diff := cmp.Diff([]enov1.ResourceState{ran, ran, applied}, u.All()); diff != "" || u.View != second {
			t.Errorf("what is written first: -want, +got:\n%s", diff)
		}
	}

	// Another synthesis begins with its own states.
	slices[0].Name, c.Status.CurrentSynthesis.ResourceSlices[0].Name = "t", "t"
	third := rebuild()
	d.Settle(second, second.Items[0].Unpacked(), ran)
	if diff := cmp.Diff(make([]enov1.ResourceState, 3), states(third)); diff != "" {
		t.Errorf("states of an earlier synthesis count: -want, +got:\n%s", diff)
	}
	if _, ok := d.Status.Dirty[types.NamespacedName{Namespace: "n", Name: "t"}]; ok {
		t.Error("they are written to its slices")
	}
}

// TestPrunedStaysDeleted has a tombstone whose object is gone reconciled again, for example while
// the server does not answer.
func TestPrunedStaysDeleted(t *testing.T) {
	text := "no answer"
	cases := map[string]struct {
		reason  string
		deleted bool // the manifest
		wrote   bool // this process has created the object since
		want    bool
	}{
		"Tombstone": {reason: "It is gone.", deleted: true, want: true},
		"Recreated": {reason: "It is there again, and to be deleted.", deleted: true, wrote: true},
		"Manifest":  {reason: "It is not to be deleted."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := idleWorker()
			c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
			c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u"}
			now := d.Timestamp()
			v := d.NewView(c, []enov1.ResourceSlice{{
				Spec:   enov1.ResourceSliceSpec{Resources: []enov1.Manifest{{Manifest: manifestOfA, Deleted: tc.deleted}}},
				Status: enov1.ResourceSliceStatus{Resources: []enov1.ResourceState{{Reconciled: true, Deleted: true, Ready: &now}}},
			}})
			it := v.Items[0]
			it.Memory.Written.Store(tc.wrote)
			v.Start()
			d.Settle(v, it, enov1.ResourceState{ReconciliationError: &text})
			if got := v.StateOf(it).Deleted; got != tc.want {
				t.Errorf("%s\nDeleted: %t", tc.reason, got)
			}
		})
	}
}
