package delivery

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// TestBlockedWhileDeleted withdraws the confirmation of a prune while workers still delete
// the objects. What they have deleted is deleted.
func TestBlockedWhileDeleted(t *testing.T) {
	const rounds, objects = 300, 20
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u", ResourceSlices: []*enov1.ResourceSliceRef{{Name: "s"}}}
	slices := []enov1.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Status: enov1.ResourceSliceStatus{Resources: make([]enov1.ResourceState, objects)}}}
	for i := range objects {
		slices[0].Spec.Resources = append(slices[0].Spec.Resources, enov1.Manifest{
			Manifest: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d","namespace":"n"}}`, i), Deleted: true,
		})
	}
	for range rounds {
		d := idle()
		old := d.NewView(c, slices)
		d.swap(old.Name, old)
		old.Start()
		next := d.NewView(c, slices)
		next.InheritFrom(old)
		next.PruneSet.Blocked = "it was confirmed no longer"
		now := d.Timestamp()
		deleted := enov1.ResourceState{Reconciled: true, Deleted: true, Ready: &now}
		var worker sync.WaitGroup
		worker.Go(func() {
			for _, it := range old.Items {
				d.Settle(old, it, deleted)
			}
		})
		d.swap(next.Name, next)
		next.Start()
		d.reportInvalid(next)
		d.reportBlocked(next)
		worker.Wait()
		states := next.States(next.Items[0].Slice)
		for i, s := range states {
			if !s.Deleted || s.ReconciliationError != nil {
				t.Fatalf("object %d was deleted, and its state is %+v", i, s)
			}
		}
		for _, u := range d.Status.Dirty {
			if diff := cmp.Diff(states, u.All()); diff != "" {
				t.Fatalf("what is written is not what is known: -want, +got:\n%s", diff)
			}
		}
	}
}
