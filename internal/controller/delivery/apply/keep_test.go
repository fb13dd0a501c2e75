package apply

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// An object of a later group is kept as it was applied last, unless a Patch of the same
// synthesis deletes or changes it first: the two would undo each other, and a hook would
// run again.
func TestKeeps(t *testing.T) {
	const (
		job   = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate","namespace":"n","annotations":{"eno.azure.io/readiness-group":"2"}}}`
		other = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"n","annotations":{"eno.azure.io/readiness-group":"2"}}}`
		patch = `{"apiVersion":"eno.azure.io/v1","kind":"Patch","metadata":{"name":"migrate","namespace":"n","annotations":{"eno.azure.io/readiness-group":"1"}},` +
			`"patch":{"apiVersion":"batch/v1","kind":"Job","ops":[{"op":"add","path":"/metadata/deletionTimestamp","value":"now"}]}}`
	)
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "s"}
	slice := enov1.ResourceSlice{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{{Manifest: patch}, {Manifest: job}, {Manifest: other}}}}
	v := idleWorker().NewView(c, []enov1.ResourceSlice{slice})
	for i, want := range []bool{false, false, true} {
		it := v.Items[i]
		if it.Problem != nil {
			t.Fatal(it.Problem)
		}
		it.Memory.Desired, it.Memory.Watched = it.Packed, true
		if got := v.Keeps(it); got != want {
			t.Errorf("%s is kept: %t, want %t", it.Identity, got, want)
		}
	}
}

// TestKeepDenied has an object of a later group changed, and the account without permission to
// correct it.
func TestKeepDenied(t *testing.T) {
	d := idleWorker()
	d.Scope = tenancy.Namespace
	d.Remote = &deaf{err: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New(`User "system:serviceaccount:a:deployer" cannot get resource "configmaps" in API group "" in the namespace "a"`))}
	seen := &contestedWatches{contested: true}
	d.Watches = seen
	c, slices := tenantOf("a", false)
	v := d.NewView(c, slices)
	d.swap(v.Name, v)
	it := v.Items[0].Unpacked()
	k := queue.Key{Composition: v.Name, Object: it.Identity}
	m := it.Memory
	m.Desired, m.Watched = it.Packed, true
	m.Location = watch.Location{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, NamespacedName: types.NamespacedName{Namespace: "a", Name: "x"}}
	if _, err := d.keep(t.Context(), k, v, it); err == nil {
		t.Fatal("the object is kept without permission")
	}
	if got := v.DeniedCondition().Reason; got != enov1.ReasonWriteForbidden {
		t.Errorf("the condition has the reason %q, want %q", got, enov1.ReasonWriteForbidden)
	}
	seen.contested = false // another client has corrected it
	if _, err := d.keep(t.Context(), k, v, it); err != nil {
		t.Fatal(err)
	}
	if got := v.DeniedCondition().Reason; got != "" {
		t.Errorf("nothing is to be done, and the condition has the reason %q", got)
	}
}

// contestedWatches know of one object, which another composition has written or not.
type contestedWatches struct{ contested bool }

func (*contestedWatches) Track(watch.Location, queue.Key)   {}
func (*contestedWatches) Untrack(watch.Location, queue.Key) {}
func (*contestedWatches) Observe(watch.Location, string) observed.Object {
	return observed.Object{}
}
func (*contestedWatches) Written(watch.Location, string, queue.Key)    {}
func (w *contestedWatches) IsContested(watch.Location, queue.Key) bool { return w.contested }
