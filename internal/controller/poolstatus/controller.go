package poolstatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
	"github.com/arbor-control/arbor/internal/ipamcache"
	"github.com/arbor-control/arbor/internal/kube"
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

// A Reconciler writes the status of pools: the decision about each, and the figures.
type Reconciler struct {
	client  client.Client
	reader  client.Reader
	view    *ipamcache.Pools
	feed    *ipamcache.Feed
	metrics *Metrics
	now     func() time.Time
	// obstacles are why backing Subnets could not be created.
	obstacles *Obstacles
}

// New returns a Reconciler. The client reads from a cache; the reader does not.
func New(c client.Client, reader client.Reader, v *ipamcache.Pools, feed *ipamcache.Feed, m *Metrics, o *Obstacles) *Reconciler {
	return &Reconciler{client: c, reader: reader, view: v, feed: feed, metrics: m, obstacles: o, now: time.Now}
}

// SetupWithManager adds the controller to a manager.
func SetupWithManager(mgr ctrl.Manager, v *ipamcache.Pools, feed *ipamcache.Feed, t *Trigger, m *Metrics, o *Obstacles) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), v, feed, m, o)

	return ctrl.NewControllerManagedBy(mgr).
		Named("PoolStatus").
		WatchesRawSource(feed.Source(ipamcache.Everything, gather)).
		WatchesRawSource(t.source()).
		Watches(&v1alpha1.SubnetPool{}, onPools(mgr.GetClient())).
		Watches(&v1alpha1.Subnet{}, onSubnets(mgr.GetClient())).
		WithOptions(options()).
		Complete(kube.Patient(r))
}

func options() controller.Options {
	return controller.Options{MaxConcurrentReconciles: workers, RateLimiter: kube.NewLimiter(), ReconciliationTimeout: timeout}
}

// Reconcile brings the status of one pool up to date. Every attempt reads the pool from the cache
// again: a decision is right only if the cache holds the pool in the version that is written.
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
	if err := r.client.Get(ctx, request.NamespacedName, pool, client.UnsafeDisableDeepCopy); err != nil {
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
	decision, err := r.decide(ctx, pool)
	if err != nil {
		return err
	}

	return r.write(ctx, pool, decision)
}

// write writes a decision and the figures of a pool, on condition that the pool has the version
// that was decided on. The pool belongs to the cache.
func (r *Reconciler) write(ctx context.Context, pool *v1alpha1.SubnetPool, decision ipamrules.PoolDecision) error {
	key, now := client.ObjectKeyFromObject(pool), r.now()
	judged := *pool
	judged.Status = ipamrules.DecidedStatus(pool, decision, metav1.NewTime(now))
	decided := isDecided(&pool.Status, &judged.Status)
	if figures, ok := r.figures(&judged); ok && decision.Action != ipamrules.Clear {
		judged.Status = ipamrules.PoolStatus(&judged, figures, metav1.NewTime(now))
	}
	if decision.Action == ipamrules.Keep && decision.Reason != "" {
		meta.SetStatusCondition(&judged.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: decision.Reason, Message: decision.Message,
			ObservedGeneration: pool.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	patch, err := patchOf(pool.ResourceVersion, &pool.Status, &judged.Status)
	if err != nil {
		return err
	}
	if patch != nil {
		version, err := r.patch(ctx, key, patch)
		if err != nil {
			return client.IgnoreNotFound(fmt.Errorf("cannot write the status of pool %s: %w", key, err))
		}
		if !decided {
			// The event of a decision must wake this controller and all other ones.
			r.feed.Wrote(key, version)
		}
	}
	r.metrics.shown(key, &judged.Status, now)

	return nil
}

// patch writes the status of a pool and returns the pool's new version. The API server
// answers with the metadata only.
func (r *Reconciler) patch(ctx context.Context, key client.ObjectKey, data []byte) (string, error) {
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetPoolKind))
	err := r.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, data))

	return answer.ResourceVersion, err
}

// isDecided reports whether a decision has changed a status.
func isDecided(before, after *v1alpha1.SubnetPoolStatus) bool {
	return before.CIDR != after.CIDR || before.UID != after.UID || before.Parent != after.Parent || before.Lost != after.Lost ||
		!sameConditions(before.Conditions, after.Conditions)
}

// figures returns the figures of a pool. It is false while the view has not seen the
// range that the pool has: the figures of another range must not be written under the
// pool's generation. The event that brings the view the range wakes this controller.
func (r *Reconciler) figures(pool *v1alpha1.SubnetPool) (ipamrules.PoolFigures, bool) {
	has, _ := poolblocks.RangeOf(pool)
	if !has.IsValid() {
		return ipamrules.PoolFigures{}, true
	}
	f := r.view.Figures(client.ObjectKeyFromObject(pool), ipamrules.MaxListedBlocks)
	if f.All == nil || f.All.Prefix() != has {
		return ipamrules.PoolFigures{}, false
	}

	return ipamrules.PoolFigures{All: f.All, Own: f.Own, Delegated: f.Delegated, Listed: listed(f.First, pool.Status.AllocatedCIDRs)}, true
}

// listed maps blocks to their owners. It returns the map from before if that is equal: most events
// of a large pool are about blocks that are not listed.
func listed(blocks []ledger.Block, before map[string]string) map[string]string {
	same := len(blocks) == len(before)
	var text [64]byte
	for i := 0; same && i < len(blocks); i++ {
		owner, ok := before[string(blocks[i].Prefix.AppendTo(text[:0]))]
		same = ok && owner == blocks[i].Owner
	}
	if same {
		return before
	}
	all := make(map[string]string, len(blocks))
	for _, b := range blocks {
		all[b.Prefix.String()] = b.Owner
	}

	return all
}
