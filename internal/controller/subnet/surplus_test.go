package subnet

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// A claimReader has at most one claim, and no pool. It counts deletions.
type claimReader struct {
	client.Client

	claim   *v1alpha1.SubnetClaim
	deleted int
}

func (r *claimReader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if c, ok := o.(*v1alpha1.SubnetClaim); ok && r.claim != nil {
		r.claim.DeepCopyInto(c)

		return nil
	}

	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (r *claimReader) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	r.deleted++

	return nil
}

// A Subnet is released only if the API server shows that its claim does not need it. A
// cache that is behind can show a claim that is bound to another Subnet: with the status
// of a backup, which was reset since.
func TestReleaseAsksTheServer(t *testing.T) {
	bound := func(subnet, cidr string) *v1alpha1.SubnetClaim {
		return &v1alpha1.SubnetClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "claim"},
			Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "c", BlockSize: new(int32(24))},
			Status:     v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound, UID: "claim", SubnetRef: subnet, AllocatedCIDR: cidr},
		}
	}
	cases := map[string]struct {
		reason       string
		cached, live *v1alpha1.SubnetClaim
		want         bool
	}{
		"Surplus":       {"The claim is bound to another Subnet.", bound("t", "10.0.1.0/24"), bound("t", "10.0.1.0/24"), true},
		"SurplusBefore": {"It is bound to this Subnet since.", bound("t", "10.0.1.0/24"), bound("s", "10.0.0.0/24"), false},
		"Bound":         {"It is bound to this Subnet.", bound("s", "10.0.0.0/24"), bound("s", "10.0.0.0/24"), false},
		"Unseen":        {"The cache does not show the claim yet.", nil, bound("s", "10.0.0.0/24"), false},
		"Gone":          {"The claim is gone.", nil, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &claimReader{claim: tc.cached}
			r := &Reconciler{client: c, reader: &claimReader{claim: tc.live}, deleted: kube.NewRecentlyDeleted(time.Now), now: time.Now}
			s := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s"},
				Spec:       v1alpha1.SubnetSpec{PoolRef: "p", ClusterID: "c", CIDR: "10.0.0.0/24", ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "claim"}},
				Status:     v1alpha1.SubnetStatus{UID: "s", Phase: v1alpha1.SubnetAllocated, ClaimUID: "claim"},
			}
			if got, err := r.release(t.Context(), s); err != nil || got != tc.want || (c.deleted == 1) != tc.want {
				t.Errorf("%s\nreleased: %t, %d deletions (%v), want %t", tc.reason, got, c.deleted, err, tc.want)
			}
		})
	}
}
