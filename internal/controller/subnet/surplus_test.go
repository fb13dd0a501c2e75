package subnet

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

// A leader that was paused can create a Subnet for a claim that no longer exists. Whatever
// becomes of the block, nothing but time shows that the claim is not about to be restored.
func TestUnclaimedIsDecidedAgain(t *testing.T) {
	created := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, phase := range []v1alpha1.SubnetPhase{v1alpha1.SubnetAllocated, v1alpha1.SubnetFailed} {
		t.Run(string(phase), func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			pool := &v1alpha1.SubnetPool{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "pool"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/16"},
			}
			s := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "s", CreationTimestamp: metav1.NewTime(created)},
				Spec: v1alpha1.SubnetSpec{PoolRef: "p", ClusterID: "c", CIDR: "10.0.0.0/24", ClaimRef: &v1alpha1.ClaimReference{
					Name: "c", UID: "claim", PoolUID: "pool", Time: new(metav1.NewTime(created)),
				}},
				Status: v1alpha1.SubnetStatus{UID: "s", Phase: phase},
			}
			server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool, s).Build()
			now := created.Add(time.Second)
			r := &Reconciler{
				client: server, reader: server, pools: newPoolReader(server), deleted: kube.NewRecentlyDeleted(time.Now),
				now: func() time.Time { return now }, grace: time.Minute,
			}
			got, err := r.Reconcile(t.Context(), s.DeepCopy())
			if want := 59 * time.Second; err != nil || got.RequeueAfter != want {
				t.Fatalf("it is decided again after %s (%v), want %s", got.RequeueAfter, err, want)
			}
			now = now.Add(got.RequeueAfter)
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reconcile(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(s), s); !apierrors.IsNotFound(err) {
				t.Errorf("it is there still: %v", err)
			}
		})
	}
}
