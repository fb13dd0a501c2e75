package subnetpoolclaim

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A liveStore is an API server with what was made for a SubnetPoolClaim. It notes the
// conditions of deletions.
type liveStore struct {
	store

	claim   types.UID // "" if there is none
	deleted []metav1.Preconditions
}

func (s *liveStore) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if s.claim == "" {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	o.SetUID(s.claim)

	return nil
}

func (s *liveStore) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	s.deleted = append(s.deleted, *(&client.DeleteOptions{}).ApplyOptions(options).Preconditions)

	return nil
}

// The objects of a SubnetPoolClaim are deleted only while the API server has that very claim. A
// cache that is behind shows a claim that is being deleted, although another was restored since,
// with a pool and a block of the same names.
func TestReleaseAsksTheServer(t *testing.T) {
	made := metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "u", ResourceVersion: "7", Labels: map[string]string{v1alpha1.PoolClaimLabel: "x"}}
	pool := v1alpha1.SubnetPool{ObjectMeta: made, Spec: v1alpha1.SubnetPoolSpec{Parent: "parent"}}
	block := v1alpha1.SubnetClaim{ObjectMeta: made, Spec: v1alpha1.SubnetClaimSpec{PoolRef: "parent"}}
	cases := map[string]struct {
		reason string
		live   liveStore
		want   int
	}{
		"Pool":          {"The pool is deleted first.", liveStore{claim: "c", store: store{pools: []v1alpha1.SubnetPool{pool}, blocks: []v1alpha1.SubnetClaim{block}}}, 1},
		"Block":         {"Then the claim for its block.", liveStore{claim: "c", store: store{blocks: []v1alpha1.SubnetClaim{block}}}, 1},
		"RestoredPool":  {"The pool belongs to the restored claim.", liveStore{claim: "new", store: store{pools: []v1alpha1.SubnetPool{pool}}}, 0},
		"RestoredBlock": {"So does the block.", liveStore{claim: "new", store: store{blocks: []v1alpha1.SubnetClaim{block}}}, 0},
		"Early":         {"They are restored before the claim.", liveStore{store: store{pools: []v1alpha1.SubnetPool{pool}}}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := poolClaim("x")
			c.UID, c.Finalizers, c.DeletionTimestamp = "c", []string{v1alpha1.Finalizer}, new(metav1.Now())
			cached := &tc.live
			r := &Reconciler{client: cached, reader: &tc.live}
			_ = r.release(t.Context(), c) // a cache that is behind is an error, which ends in another attempt
			if len(tc.live.deleted) != tc.want {
				t.Fatalf("%s\n%d deletions, want %d", tc.reason, len(tc.live.deleted), tc.want)
			}
			for _, p := range tc.live.deleted {
				if p.UID == nil || *p.UID != "u" || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
					t.Errorf("deleted on condition of %+v, want the UID and the resourceVersion", p)
				}
			}
		})
	}
}
