package subnetclaim

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// A liveClaim is an API server with at most one claim.
type liveClaim struct {
	client.Client

	uid types.UID
}

func (l liveClaim) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if l.uid == "" {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	o.SetUID(l.uid)

	return nil
}

// A claim adopts a Subnet of a backup only if the API server has that very claim. The Subnet
// names the UID of the claim that was deleted, which a cache that is behind still shows.
func TestConfirm(t *testing.T) {
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		taken  time.Time
		live   types.UID
		want   bool
	}{
		"Original": {"It was created for this claim a moment ago: no read is needed.", created, "", true},
		"Restored": {"The claim exists, and the Subnet was restored.", created.Add(-time.Hour), "c", true},
		"Deleted":  {"The claim was deleted before the Subnet was restored.", created.Add(-time.Hour), "", false},
		"Replaced": {"The claim was restored, too.", created.Add(-time.Hour), "new", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.SubnetClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c"}}
			s := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", CreationTimestamp: metav1.NewTime(created)},
				Spec:       v1alpha1.SubnetSpec{ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "c", Time: new(metav1.NewTime(tc.taken))}},
			}
			if err := (&Binder{reader: liveClaim{uid: tc.live}}).confirm(t.Context(), c, s); (err == nil) != tc.want {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}
