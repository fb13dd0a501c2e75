package subnetclaim

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A deleter notes the conditions of the deletions that it is asked for.
type deleter struct {
	client.Client

	deleted map[string]metav1.Preconditions
}

func (d *deleter) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	all := (&client.DeleteOptions{}).ApplyOptions(options)
	d.deleted[o.GetName()] = *all.Preconditions

	return nil
}

// Failed Subnets are deleted only as they were read. A Subnet with the status of a backup
// looks Failed until its status is reset; then it can become Allocated and the block of a
// bound claim.
func TestClear(t *testing.T) {
	subnet := func(name string, status v1alpha1.SubnetStatus) v1alpha1.Subnet {
		return v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "7"}, Status: status}
	}
	d := &deleter{deleted: map[string]metav1.Preconditions{}}
	err := (&Binder{client: d}).clear(t.Context(), []v1alpha1.Subnet{
		subnet("failed", v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetFailed, UID: "u"}),
		subnet("old", v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetFailed}), // of a version without status.uid
		subnet("restored", v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetFailed, UID: "former"}),
		subnet("pending", v1alpha1.SubnetStatus{}),
		subnet("allocated", v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated, UID: "u"}),
	})
	if err != nil || len(d.deleted) != 2 {
		t.Errorf("deleted %v (%v), want failed and old", d.deleted, err)
	}
	for _, name := range []string{"failed", "old"} {
		if p := d.deleted[name]; p.UID == nil || *p.UID != "u" || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
			t.Errorf("Subnet %s is deleted on condition of %+v, want its UID and its resourceVersion", name, p)
		}
	}
}
