package subnetpoolclaim

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// A manager is killed after it has created the claim for a block, and before it sees that
// the SubnetPoolClaim is gone. The block is released later, unless the API server shows that
// it is needed.
func TestAbandonedBlock(t *testing.T) {
	const grace = 10 * time.Minute
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	made := metav1.ObjectMeta{Namespace: "ns", Name: "x", Labels: map[string]string{v1alpha1.PoolClaimLabel: "x"}}
	waiting := func(record string) func(*apiServer) {
		return func(s *apiServer) {
			s.blocks["c"] = &v1alpha1.SubnetClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Annotations: map[string]string{v1alpha1.BlockAnnotation: record}},
				Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "x"},
			}
		}
	}
	inPool := func(phase v1alpha1.SubnetPhase) func(*apiServer) {
		return func(s *apiServer) {
			s.subnets = []v1alpha1.Subnet{{Spec: v1alpha1.SubnetSpec{PoolRef: "x"}, Status: v1alpha1.SubnetStatus{Phase: phase}}}
		}
	}
	cases := map[string]struct {
		reason       string
		cached, live func(*apiServer)
		waited       time.Duration
		released     bool
		after        time.Duration
	}{
		"Orphan":     {"Nothing needs it.", nil, nil, grace, true, 0},
		"Early":      {"The SubnetPoolClaim may be restored next.", nil, nil, 4 * time.Minute, false, 6 * time.Minute},
		"Restored":   {"The cache does not show the SubnetPoolClaim yet.", nil, func(s *apiServer) { s.claim = poolClaim("x") }, grace, false, 0},
		"Pool":       {"The cache does not show the pool yet.", nil, func(s *apiServer) { s.pools["x"] = &v1alpha1.SubnetPool{ObjectMeta: made} }, grace, false, 0},
		"NoParent":   {"The parent is not restored yet.", nil, func(s *apiServer) { s.parent = nil }, grace, false, grace},
		"Restoring":  {"The parent is being restored.", func(s *apiServer) { s.parent.Annotations = map[string]string{v1alpha1.PoolUIDAnnotation: "old"} }, nil, grace, false, grace},
		"Subnets":    {"Subnets of the pool are restored.", nil, inPool(v1alpha1.SubnetPending), grace, false, grace},
		"Failed":     {"A Failed Subnet has no addresses.", nil, inPool(v1alpha1.SubnetFailed), grace, true, 0},
		"Recorded":   {"A restored claim waits for the pool.", waiting("x/10.0.0.0/28"), nil, grace, false, grace},
		"Unrecorded": {"A claim that names a pool which does not exist keeps nothing.", waiting("y/10.0.0.0/28"), nil, grace, true, 0},
		"Changed":    {"It is another claim with the name.", nil, func(s *apiServer) { s.blocks["x"].UID = "other" }, grace, false, 0},
		"ByHand":     {"A user labeled a claim of another cluster.", func(s *apiServer) { s.blocks["x"].Spec.ClusterID = "c" }, nil, grace, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cached, live := newAPIServer(), newAPIServer()
			for _, s := range []*apiServer{cached, live} {
				s.parent = &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "parent", UID: "p"}}
				block := &v1alpha1.SubnetClaim{
					ObjectMeta: *made.DeepCopy(), Spec: v1alpha1.SubnetClaimSpec{PoolRef: "parent", ClusterID: clusterID("x")},
					Status: v1alpha1.SubnetClaimStatus{Phase: v1alpha1.ClaimBound},
				}
				block.UID, block.Finalizers = "b", []string{v1alpha1.Finalizer}
				s.write(block)
			}
			for s, change := range map[*apiServer]func(*apiServer){cached: tc.cached, live: tc.live} {
				if change != nil {
					change(s)
				}
			}
			at := now
			r := &Reconciler{
				client: splitClient{cached, live}, reader: live,
				grace: grace, now: func() time.Time { return at }, known: kube.NewFirstSeen(2 * grace),
			}
			key := types.NamespacedName{Namespace: "ns", Name: "x"}
			if _, err := r.abandoned(t.Context(), key); err != nil || live.blocks["x"].DeletionTimestamp != nil {
				t.Fatalf("%s\nit is released at once (%v)", tc.reason, err)
			}
			at = at.Add(tc.waited)
			result, err := r.abandoned(t.Context(), key)
			if err != nil || result.RequeueAfter != tc.after {
				t.Errorf("%s\nit is reconciled again after %s (%v), want %s", tc.reason, result.RequeueAfter, err, tc.after)
			}
			if block := live.blocks["x"]; (block == nil || block.DeletionTimestamp != nil) != tc.released {
				t.Errorf("%s\nthe SubnetClaim is %+v", tc.reason, block)
			}
		})
	}
}
