package poolstatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	poolrules "github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/decide/poolblocks"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/view"
)

const (
	workers = 5
	timeout = 90 * time.Second

	// gather is how long events of one pool are collected: a Subnet and a child
	// pool that are deleted together are one reconciliation, and a burst of claims
	// costs a few writes of the status.
	gather = 100 * time.Millisecond

	// behindPause is how long a reconciliation waits for a cache that has not seen
	// this controller's last write.
	behindPause = 50 * time.Millisecond
)

// errBehind means that the cache has not seen this controller's last write.
var errBehind = errors.New("the cache is behind the last write")

// A Reconciler writes the status of pools: the verdict on each, and the figures.
type Reconciler struct {
	client  client.Client
	reader  client.Reader
	view    *view.Pools
	feed    *view.Feed
	metrics *Metrics
	now     func() time.Time
	// obstacles are why backing Subnets could not be created.
	obstacles *Obstacles
}

// New returns a Reconciler. The client reads from a cache; the reader does not.
func New(c client.Client, reader client.Reader, v *view.Pools, feed *view.Feed, m *Metrics, o *Obstacles) *Reconciler {
	return &Reconciler{client: c, reader: reader, view: v, feed: feed, metrics: m, obstacles: o, now: time.Now}
}

// SetupWithManager adds the controller to a manager.
func SetupWithManager(mgr ctrl.Manager, v *view.Pools, feed *view.Feed, t *Trigger, m *Metrics, o *Obstacles) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), v, feed, m, o)

	return ctrl.NewControllerManagedBy(mgr).
		Named("PoolStatus").
		WatchesRawSource(feed.Source(view.Everything, gather)).
		WatchesRawSource(t.source()).
		Watches(&v1alpha1.SubnetPool{}, onPools(mgr.GetClient())).
		Watches(&v1alpha1.Subnet{}, onSubnets(mgr.GetClient())).
		WithOptions(options()).
		Complete(kube.Patient(r))
}

func options() controller.Options {
	return controller.Options{MaxConcurrentReconciles: workers, RateLimiter: kube.NewLimiter(), ReconciliationTimeout: timeout}
}

// Reconcile brings the status of one pool up to date. Every attempt reads the pool
// from the cache again: a verdict is right only if the cache holds the pool in the
// version that is written.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (_ reconcile.Result, err error) {
	end := r.metrics.begin()
	defer func() { end(err) }()
	err = kube.RetryOnConflict(ctx, func(ctx context.Context) error { return r.update(ctx, request) })
	if errors.Is(err, errBehind) {
		return reconcile.Result{RequeueAfter: behindPause}, nil
	}

	return reconcile.Result{}, err
}

// update writes the status if it differs.
func (r *Reconciler) update(ctx context.Context, request reconcile.Request) error {
	pool := &v1alpha1.SubnetPool{}
	if err := r.client.Get(ctx, request.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.gone(request.NamespacedName)
			r.feed.Forget(request.NamespacedName)
			r.obstacles.Set(request.NamespacedName, "")

			return nil
		}

		return fmt.Errorf("cannot read pool %s: %w", request, err)
	}
	if r.feed.Behind(pool) {
		return errBehind
	}
	verdict, err := r.judge(ctx, pool)
	if err != nil {
		return err
	}

	return r.write(ctx, pool, verdict)
}

// write writes a verdict and the figures on a pool, on condition that the pool has the
// version that was judged.
func (r *Reconciler) write(ctx context.Context, pool *v1alpha1.SubnetPool, verdict poolrules.Verdict) error {
	key, now := client.ObjectKeyFromObject(pool), r.now()
	judged := pool.DeepCopy()
	judged.Status = poolrules.Judged(pool, verdict, metav1.NewTime(now))
	decided := !equality.Semantic.DeepEqual(judged.Status, pool.Status)
	if figures, ok := r.figures(judged); ok && verdict.Action != poolrules.Clear {
		judged.Status = poolrules.Status(judged, figures, metav1.NewTime(now))
	}
	if verdict.Action == poolrules.Keep && verdict.Reason != "" {
		meta.SetStatusCondition(&judged.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: verdict.Reason, Message: verdict.Message,
			ObservedGeneration: pool.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	if !equality.Semantic.DeepEqual(judged.Status, pool.Status) {
		if err := r.client.Status().Patch(ctx, judged, patchOf(pool)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("cannot write the status of pool %s: %w", key, err))
		}
		if !decided {
			// The event of a verdict must wake this controller and others.
			r.feed.Wrote(key, judged.ResourceVersion)
		}
	}
	r.metrics.shown(key, &judged.Status, now)

	return nil
}

// patchOf returns a patch that applies to this version of a pool only.
func patchOf(pool *v1alpha1.SubnetPool) client.Patch {
	base := pool.DeepCopy()
	if base.Status.ObservedGeneration == 0 {
		// A patch leaves out what does not change, and a first 0 would never
		// be written.
		base.Status.AllocatedCount, base.Status.UtilizationPercent, base.Status.FragmentationPercent = -1, -1, -1
	}

	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// figures returns the figures of a pool. It is false while the view has not seen the
// range that the pool has: the figures of another range must not be written under the
// pool's generation. The event that brings the view the range wakes this controller.
func (r *Reconciler) figures(pool *v1alpha1.SubnetPool) (poolrules.Figures, bool) {
	has, _ := poolblocks.RangeOf(pool)
	if !has.IsValid() {
		return poolrules.Figures{}, true
	}
	f := r.view.Figures(client.ObjectKeyFromObject(pool), poolrules.MaxListed)
	if f.All == nil || f.All.Prefix() != has {
		return poolrules.Figures{}, false
	}
	listed := make(map[string]string, len(f.First))
	for _, b := range f.First {
		listed[b.Prefix.String()] = b.Owner
	}

	return poolrules.Figures{All: f.All, Own: f.Own, Delegated: f.Delegated, Listed: listed}, true
}
