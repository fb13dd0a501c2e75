package subnetpoolclaim

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A store has the objects of one SubnetPoolClaim, and records the finalizers that are
// written.
type store struct {
	client.Client

	blocks []v1alpha1.SubnetClaim
	pools  []v1alpha1.SubnetPool
	wrote  [][]string
}

func (s *store) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.SubnetClaimList:
		list.Items = s.blocks
	case *v1alpha1.SubnetPoolList:
		list.Items = s.pools
	}

	return nil
}

func (s *store) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	s.wrote = append(s.wrote, o.GetFinalizers())

	return nil
}

// The finalizer of a block that is being deleted is for the pool in it. Without a pool
// the claim is created again.
func TestDeletedBlock(t *testing.T) {
	c := poolClaim("x")
	made := metav1.ObjectMeta{Namespace: "ns", Name: "x", Labels: map[string]string{v1alpha1.PoolClaimLabel: "x"}}
	pool := v1alpha1.SubnetPool{ObjectMeta: made, Spec: v1alpha1.SubnetPoolSpec{Parent: "parent"}}
	cases := map[string]struct {
		reason   string
		phase    v1alpha1.ClaimPhase
		deleting bool
		pools    []v1alpha1.SubnetPool
		want     [][]string
	}{
		"Living":  {"It waits for a block.", v1alpha1.ClaimPending, false, nil, nil},
		"Waiting": {"It has no block and no pool.", v1alpha1.ClaimPending, true, nil, [][]string{{}}},
		"Pool":    {"The pool needs the block.", v1alpha1.ClaimPending, true, []v1alpha1.SubnetPool{pool}, nil},
		"Bound":   {"A pool is created in the block.", v1alpha1.ClaimBound, true, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			block := v1alpha1.SubnetClaim{ObjectMeta: *made.DeepCopy(), Status: v1alpha1.SubnetClaimStatus{Phase: tc.phase}}
			block.Finalizers = []string{v1alpha1.Finalizer}
			block.Spec.PoolRef, block.Spec.BlockSize = "parent", &c.Spec.DesiredBlockSize
			if tc.deleting {
				block.DeletionTimestamp = new(metav1.Now())
			}
			s := &store{blocks: []v1alpha1.SubnetClaim{block}, pools: tc.pools}
			r := &Reconciler{client: s, reader: s}
			if _, err := r.block(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.wrote); diff != "" {
				t.Errorf("%s\nfinalizers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
