package poolstatus

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	decide "github.com/arbor-control/arbor/internal/decide/pool"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/view"
)

const (
	workers = 5
	timeout = 90 * time.Second

	// gather is how long what happens to one pool is gathered: a Subnet and a
	// child pool that go together are one look, and a burst of claims costs a
	// few writes of the status, not one for each.
	gather = 100 * time.Millisecond
)

// A Reconciler keeps the status of pools true.
type Reconciler struct {
	client  client.Client
	reader  client.Reader
	view    *view.Pools
	feed    *view.Feed
	metrics *Metrics
	now     func() time.Time
}

// New makes a Reconciler. The client may read from a cache; the reader does not.
func New(c client.Client, reader client.Reader, v *view.Pools, feed *view.Feed, m *Metrics) *Reconciler {
	return &Reconciler{client: c, reader: reader, view: v, feed: feed, metrics: m, now: time.Now}
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager, v *view.Pools, feed *view.Feed, t *Trigger, m *Metrics) error {
	r := New(mgr.GetClient(), mgr.GetAPIReader(), v, feed, m)

	return ctrl.NewControllerManagedBy(mgr).
		Named("PoolStatus").
		WatchesRawSource(feed.Source(view.Everything, gather)).
		WatchesRawSource(t.source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: kube.NewLimiter()}).
		Complete(kube.Patient(r))
}

// Reconcile brings the status of one pool up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (_ reconcile.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	end := r.metrics.begin()
	defer func() { end(err) }()

	// Who lost a race has a cache that is behind.
	from := client.Reader(r.client)

	return reconcile.Result{}, kube.RetryOnConflict(ctx, func(ctx context.Context) error {
		defer func() { from = r.reader }()

		return r.show(ctx, from, request)
	})
}

// read returns a pool, never one that is older than what was last written here.
func (r *Reconciler) read(ctx context.Context, from client.Reader, request reconcile.Request) (*v1alpha1.SubnetPool, error) {
	pool := &v1alpha1.SubnetPool{}
	err := from.Get(ctx, request.NamespacedName, pool)
	if err == nil && r.feed.Behind(pool) {
		err = r.reader.Get(ctx, request.NamespacedName, pool)
	}

	return pool, err
}

// show writes the status if it is not there yet.
func (r *Reconciler) show(ctx context.Context, from client.Reader, request reconcile.Request) error {
	pool, err := r.read(ctx, from, request)
	if err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.gone(request.NamespacedName)

			return nil
		}

		return fmt.Errorf("cannot read pool %s: %w", request, err)
	}
	figures := r.figures(request)
	if _, err := netip.ParsePrefix(pool.Spec.CIDR); err == nil && figures.All == nil {
		return nil // the view is about to hear of the pool, and wakes us then
	}
	now := r.now()
	want := decide.Status(pool, figures, metav1.NewTime(now))
	if equality.Semantic.DeepEqual(pool.Status, want) {
		r.metrics.shown(request.NamespacedName, &want, now)

		return nil
	}
	had := pool.DeepCopy()
	if had.Status.ObservedGeneration == 0 {
		// A patch leaves out what does not change, and a first 0 would never
		// be written.
		had.Status.AllocatedCount, had.Status.UtilizationPercent, had.Status.FragmentationPercent = -1, -1, -1
	}
	base := client.MergeFromWithOptions(had, client.MergeFromWithOptimisticLock{})
	pool.Status = want
	err = r.client.Status().Patch(ctx, pool, base)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the status of pool %s: %w", request, err)
	}
	r.feed.Wrote(request.NamespacedName, pool.ResourceVersion)
	r.metrics.shown(request.NamespacedName, &want, now)

	return nil
}

func (r *Reconciler) figures(request reconcile.Request) decide.Figures {
	f, ok := r.view.Figures(request.NamespacedName, decide.MaxListed)
	if !ok {
		return decide.Figures{}
	}
	listed := make(map[string]string, len(f.First))
	for _, b := range f.First {
		listed[b.Prefix.String()] = b.Owner
	}

	return decide.Figures{All: f.All, Own: f.Own, Delegated: f.Delegated, Listed: listed}
}
