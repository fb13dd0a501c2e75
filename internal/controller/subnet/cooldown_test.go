package subnet

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/kube"
)

// A coolServer has at most one pool and one claim. It counts reads and records finalizers
// that are written.
type coolServer struct {
	client.Client

	pool  *v1alpha1.SubnetPool
	claim *v1alpha1.SubnetClaim

	reads map[string]int
	freed bool
}

func (s *coolServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.SubnetPool:
		s.reads["pool"]++
		if s.pool != nil {
			s.pool.DeepCopyInto(o)

			return nil
		}
	case *v1alpha1.SubnetClaim:
		s.reads["claim"]++
		if s.claim != nil {
			s.claim.DeepCopyInto(o)

			return nil
		}
	}

	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *coolServer) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	s.freed = len(o.GetFinalizers()) == 0

	return nil
}

// The end of a cool-down costs a shared read of the pool, and a read of the claim only if the
// claim matters.
func TestCoolReads(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pool := func(after time.Duration) *v1alpha1.SubnetPool {
		return &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.SubnetPoolSpec{ReuseAfter: &metav1.Duration{Duration: after}}}
	}
	deleting := pool(time.Hour)
	deleting.DeletionTimestamp = new(metav1.NewTime(now))
	insists := &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Annotations: map[string]string{v1alpha1.BlockAnnotation: "p/10.0.0.0/24"}},
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: "c", BlockSize: new(int32(24))},
	}
	bound := insists.DeepCopy()
	bound.Status.Phase = v1alpha1.ClaimBound
	cases := map[string]struct {
		reason       string
		cached, pool *v1alpha1.SubnetPool
		claim        *v1alpha1.SubnetClaim
		shared       int // reads of the pool
		reads        map[string]int
		freed        bool
	}{
		"Over":     {"The time is over, whatever the claim needs.", pool(time.Minute), pool(time.Minute), bound, 1, map[string]int{}, true},
		"Gone":     {"The pool is gone.", nil, nil, bound, 1, map[string]int{}, true},
		"Deleting": {"The pool is being deleted.", deleting, deleting, bound, 1, map[string]int{}, true},
		"Cooling":  {"The cache is enough to see that.", pool(time.Hour), pool(time.Hour), bound, 0, map[string]int{}, false},
		"Changed":  {"The cache does not show the new time yet.", pool(time.Minute), pool(time.Hour), bound, 1, map[string]int{"claim": 1}, false},
		"Insists":  {"The claim of its name gets no other block.", pool(time.Minute), pool(time.Hour), insists, 1, map[string]int{"claim": 1}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cached, live := &coolServer{pool: tc.cached, claim: tc.claim, reads: map[string]int{}}, &coolServer{pool: tc.pool, claim: tc.claim, reads: map[string]int{}}
			shared := 0
			pools := newPoolReader(live)
			pools.get = func(context.Context, types.NamespacedName) (*v1alpha1.SubnetPool, error) {
				shared++

				return tc.pool, nil
			}
			r := &Reconciler{client: cached, reader: live, pools: pools, deleted: kube.NewRecentlyDeleted(time.Now), now: func() time.Time { return now }}
			s := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "s", UID: "s", Finalizers: []string{v1alpha1.Finalizer}, DeletionTimestamp: new(metav1.NewTime(now.Add(-2 * time.Minute))),
				},
				Spec:   v1alpha1.SubnetSpec{PoolRef: "p", ClusterID: "c", CIDR: "10.0.0.0/24", ClaimRef: &v1alpha1.ClaimReference{Name: "c", UID: "claim"}},
				Status: v1alpha1.SubnetStatus{UID: "s", Phase: v1alpha1.SubnetAllocated, ClaimUID: "claim"},
			}
			result, err := r.cool(t.Context(), s)
			if err != nil || cached.freed != tc.freed || (result.RequeueAfter > 0) == tc.freed {
				t.Errorf("%s\nfreed: %t, again after %s (%v), want %t", tc.reason, cached.freed, result.RequeueAfter, err, tc.freed)
			}
			if diff := cmp.Diff(tc.reads, live.reads); diff != "" || shared != tc.shared {
				t.Errorf("%s\n%d shared reads, want %d; others (-want +got):\n%s", tc.reason, shared, tc.shared, diff)
			}
		})
	}
}
