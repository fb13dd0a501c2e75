package subnetclaim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	pools    = 4  // that are served at once
	together = 16 // requests at once for one pool

	// overdue is how long the watch may take to bring a Subnet that was created.
	// Then the allocator reads that Subnet from the API server.
	overdue = 30 * time.Second
	// safetyNet is how long a pool with waiting claims is left alone at most.
	safetyNet = overdue + time.Second
	// firstRetry is the delay after the first error that is not about one claim.
	firstRetry = 50 * time.Millisecond
)

// An Allocator chooses blocks for claims and creates their Subnets, one pool at a
// time.
type Allocator struct {
	api     api
	view    *ipamcache.Pools
	metrics *Metrics
	others  *contention
	backoff *backoff
	now     func() time.Time
	// recount counts the blocks of a pool again, from the cache.
	recount func(context.Context, types.NamespacedName) error
	// enqueue has the status of a pool updated.
	enqueue func(context.Context, types.NamespacedName)
}

// SetupAllocator starts it with the manager.
func SetupAllocator(mgr ctrl.Manager, v *ipamcache.Pools, feed *ipamcache.Feed, m *Metrics, enqueue func(context.Context, types.NamespacedName)) error {
	a := &Allocator{
		api:  &server{cached: mgr.GetClient(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("arbor-subnets")},
		view: v, metrics: m, others: newContention(), backoff: newBackoff(), now: time.Now, enqueue: enqueue,
		recount: func(ctx context.Context, pool types.NamespacedName) error {
			return feed.Recount(ctx, mgr.GetClient(), pool)
		},
	}
	feed.OnLost(func(pool types.NamespacedName) { a.others.lost(pool, a.now()) })

	return ctrl.NewControllerManagedBy(mgr).
		Named("allocator").
		Watches(&v1alpha1.SubnetClaim{}, claimEvents()).
		WatchesRawSource(feed.Source(ipamcache.Room, 0)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: pools,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, safetyNet),
		}).
		Complete(kube.Patient(a))
}

// Reconcile serves the claims that wait for a pool. The error of one claim is reported in the
// status of that claim, and is not an error here.
func (a *Allocator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	pool, err := a.api.Pool(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if pool == nil {
		a.others.forget(key)
	}
	claims, err := a.claims(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	a.backoff.keep(key, claims)
	a.metrics.waits(key, waiting(claims))
	r := &round{Allocator: a, key: key, pool: pool, now: a.now()}
	r.settle(ctx)
	if len(claims) > 0 {
		r.again(safetyNet)
		err = r.serve(ctx, claims)
	}

	return reconcile.Result{RequeueAfter: r.after}, err
}

// claims lists the claims of a pool that are not Bound: first those that ask for one
// exact block, which no other claim may take from them, and then the oldest first.
func (a *Allocator) claims(ctx context.Context, pool types.NamespacedName) ([]v1alpha1.SubnetClaim, error) {
	claims, err := a.api.Claims(ctx, pool)
	claims = slices.DeleteFunc(claims, func(c v1alpha1.SubnetClaim) bool { return c.DeletionTimestamp != nil })
	slices.SortFunc(claims, func(x, y v1alpha1.SubnetClaim) int {
		if d := cmp.Compare(rank(&x), rank(&y)); d != 0 {
			return d
		}
		if d := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); d != 0 {
			return d
		}

		return strings.Compare(x.Name, y.Name)
	})

	return claims, err
}

// rank is lower for the claims that are served first: those that had a block, and then
// those that can be given only one.
func rank(c *v1alpha1.SubnetClaim) int {
	if _, ok := ipamrules.RecordedBlock(c); ok {
		return 0
	}
	if _, ok := ipamrules.ExactBlock(c); ok {
		return 1
	}

	return 2
}

// waiting counts the claims that may still be bound as they are. Those whose Subnet
// was created count too: they can lose it.
func waiting(claims []v1alpha1.SubnetClaim) int {
	n := 0
	for i := range claims {
		if claims[i].Status.Phase != v1alpha1.ClaimError {
			n++
		}
	}

	return n
}
