package subnetclaim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	decide "github.com/arbor-control/arbor/internal/decide/claim"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/view"
)

const (
	pools    = 4  // that are served at once
	together = 16 // requests at once for one pool

	// overdue is how long a Subnet that was created may take to be seen. Then
	// it is looked for.
	overdue = 30 * time.Second
)

// errTaken makes a pool be served again.
var errTaken = errors.New("a block was taken by somebody else in the meantime")

// An Allocator takes blocks for claims, one pool at a time.
type Allocator struct {
	client   client.Client
	reader   client.Reader
	recorder events.EventRecorder
	view     *view.Pools
	metrics  *Metrics
	others   *contention
	now      func() time.Time
	// enqueue makes somebody look at the status of a pool.
	enqueue func(context.Context, types.NamespacedName)
}

// SetupAllocator starts it with the manager.
func SetupAllocator(mgr ctrl.Manager, v *view.Pools, feed *view.Feed, m *Metrics, enqueue func(context.Context, types.NamespacedName)) error {
	a := &Allocator{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("arbor-subnets"),
		view: v, metrics: m, others: newContention(), now: time.Now, enqueue: enqueue,
	}
	feed.OnLost(func(pool types.NamespacedName) { a.others.lost(pool, a.now()) })

	return ctrl.NewControllerManagedBy(mgr).
		Named("allocator").
		// A claim never changes what it asks for, and what it lost comes by the
		// feed: only new ones are news.
		Watches(&v1alpha1.SubnetClaim{}, handler.EnqueueRequestsFromMapFunc(poolOf), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(e event.DeleteEvent) bool { // one less waits
				c, ok := e.Object.(*v1alpha1.SubnetClaim)

				return ok && c.Status.Phase != v1alpha1.ClaimBound
			},
		})).
		WatchesRawSource(feed.Source(view.Room, 0)).
		WithOptions(controller.Options{MaxConcurrentReconciles: pools}).
		Complete(kube.Patient(a))
}

// poolOf maps a claim to the pool that it wants to be served from.
func poolOf(_ context.Context, o client.Object) []reconcile.Request {
	c, ok := o.(*v1alpha1.SubnetClaim)
	if !ok {
		return nil
	}

	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.PoolRef}}}
}

// Reconcile serves the claims that wait for a pool.
func (a *Allocator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if err := a.lookForOverdue(ctx, request.NamespacedName); err != nil {
		return reconcile.Result{}, err
	}
	claims, err := a.waiting(ctx, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer func() { a.metrics.left(request.NamespacedName, a.unserved(request, claims)) }()
	if len(claims) == 0 {
		return reconcile.Result{}, nil
	}
	pool := &v1alpha1.SubnetPool{}
	if err := a.client.Get(ctx, request.NamespacedName, pool); err != nil {
		if !apierrors.IsNotFound(err) {
			return reconcile.Result{}, fmt.Errorf("cannot read pool %s: %w", request, err)
		}

		return reconcile.Result{}, a.tellAll(ctx, claims, decide.ReasonPoolNotFound, fmt.Sprintf("pool %s does not exist", request.Name))
	}
	prefix, err := netip.ParsePrefix(pool.Spec.CIDR)
	if err != nil || pool.DeletionTimestamp != nil {
		return reconcile.Result{}, a.tellAll(ctx, claims, decide.ReasonPoolInvalid, fmt.Sprintf("pool %s hands out nothing: its CIDR is not valid, or it is being deleted", request.Name))
	}

	return a.serveAll(ctx, pool, prefix, claims)
}

// serveAll serves claims of a pool, unless others are at it.
func (a *Allocator) serveAll(ctx context.Context, pool *v1alpha1.SubnetPool, prefix netip.Prefix, claims []v1alpha1.SubnetClaim) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(pool)
	if pause := a.others.pause(key, a.now()); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	// What is taken is counted without waiting for its events.
	defer a.enqueue(ctx, key)
	err := a.each(claims, func(c *v1alpha1.SubnetClaim) error { return a.serve(ctx, pool, prefix, c) })
	if errors.Is(err, errTaken) {
		a.others.lost(key, a.now())

		return reconcile.Result{RequeueAfter: shortest}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}

	return reconcile.Result{RequeueAfter: overdue + time.Second}, nil
}

// waiting lists the claims without a block, the oldest first.
func (a *Allocator) waiting(ctx context.Context, request reconcile.Request) ([]v1alpha1.SubnetClaim, error) {
	list := &v1alpha1.SubnetClaimList{}
	err := a.client.List(ctx, list, client.InNamespace(request.Namespace), client.MatchingFields{kube.ClaimWaitingIndexKey: request.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("cannot list SubnetClaims: %w", err)
	}
	claims := slices.DeleteFunc(list.Items, func(c v1alpha1.SubnetClaim) bool {
		return c.DeletionTimestamp != nil || a.view.Serves(request.NamespacedName, c.UID)
	})
	slices.SortFunc(claims, func(x, y v1alpha1.SubnetClaim) int {
		if d := x.CreationTimestamp.Compare(y.CreationTimestamp.Time); d != 0 {
			return d
		}

		return slices.Compare([]byte(x.Name), []byte(y.Name))
	})

	return claims, nil
}

// unserved counts the claims that have no block and may still get one.
func (a *Allocator) unserved(request reconcile.Request, claims []v1alpha1.SubnetClaim) int {
	n := 0
	for i := range claims {
		if c := &claims[i]; c.Status.Phase != v1alpha1.ClaimError && !a.view.Serves(request.NamespacedName, c.UID) {
			n++
		}
	}

	return n
}

// serve takes a block for one claim, or says why there is none.
func (a *Allocator) serve(ctx context.Context, pool *v1alpha1.SubnetPool, prefix netip.Prefix, c *v1alpha1.SubnetClaim) error {
	wish, refusal := decide.Read(c, pool, prefix)
	if refusal != nil {
		return a.tell(ctx, c, v1alpha1.ClaimError, refusal.Reason, refusal.Message)
	}
	b, err := a.reserve(pool, wish, c)
	if err != nil {
		return a.tell(ctx, c, v1alpha1.ClaimPending, reasonOf(err), err.Error())
	}
	err = a.create(ctx, c, b)
	if err != nil {
		a.view.Drop(client.ObjectKeyFromObject(pool), b.Name)
	}
	if apierrors.IsAlreadyExists(err) {
		return a.learn(ctx, pool, b.Name)
	}

	return err
}

// learn tells the view of a Subnet that another manager made, and that the
// watch has not brought yet. The claim is tried again.
func (a *Allocator) learn(ctx context.Context, pool *v1alpha1.SubnetPool, name string) error {
	s := &v1alpha1.Subnet{}
	err := a.reader.Get(ctx, client.ObjectKey{Namespace: pool.Namespace, Name: name}, s)
	if apierrors.IsNotFound(err) {
		return errTaken // and gone again
	}
	if err != nil {
		return fmt.Errorf("cannot read Subnet %s/%s: %w", pool.Namespace, name, err)
	}
	if prefix, err := netip.ParsePrefix(s.Spec.CIDR); err == nil && s.Spec.PoolRef == pool.Name {
		a.view.Put(client.ObjectKeyFromObject(pool), view.BlockOf(s, prefix))
	}

	return errTaken
}

func (a *Allocator) reserve(pool *v1alpha1.SubnetPool, wish decide.Wish, c *v1alpha1.SubnetClaim) (view.Block, error) {
	key := client.ObjectKeyFromObject(pool)
	b := view.Block{Owner: c.Spec.ClusterID, Claim: c.UID}
	if wish.Exact.IsValid() {
		b.Prefix, b.Name = wish.Exact, decide.SubnetName(pool.Name, wish.Exact)

		return b, a.view.ReserveExact(key, b, a.now())
	}
	strategy := cidr.FirstFit
	if pool.Spec.Strategy == v1alpha1.StrategyBuddy {
		strategy = cidr.BestFit
	}

	return a.view.Reserve(key, wish.Length, strategy, b, func(p netip.Prefix) string { return decide.SubnetName(pool.Name, p) }, a.now())
}

// create makes the Subnet of a block, Pending.
func (a *Allocator) create(ctx context.Context, c *v1alpha1.SubnetClaim, b view.Block) error {
	owner := metav1.NewControllerRef(c, v1alpha1.GroupVersion.WithKind(v1alpha1.SubnetClaimKind))
	err := a.client.Create(ctx, &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       c.Namespace,
			Name:            b.Name,
			Labels:          map[string]string{v1alpha1.ClusterIDLabel: c.Spec.ClusterID},
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: v1alpha1.SubnetSpec{
			PoolRef: c.Spec.PoolRef, CIDR: b.Prefix.String(), ClusterID: c.Spec.ClusterID,
			ClaimRef: &v1alpha1.ClaimReference{Name: c.Name, UID: c.UID},
		},
	})
	if err != nil {
		return fmt.Errorf("cannot create Subnet %s/%s: %w", c.Namespace, b.Name, err)
	}

	return nil
}

// lookForOverdue gives back what was reserved for Subnets that came and went
// unseen.
func (a *Allocator) lookForOverdue(ctx context.Context, key types.NamespacedName) error {
	for _, name := range a.view.Unseen(key, a.now().Add(-overdue)) {
		err := a.reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, &v1alpha1.Subnet{})
		if apierrors.IsNotFound(err) {
			a.view.Drop(key, name)
		} else if err != nil {
			return fmt.Errorf("cannot read Subnet %s/%s: %w", key.Namespace, name, err)
		}
	}

	return nil
}

// tell says on a claim why it has no block, once.
func (a *Allocator) tell(ctx context.Context, c *v1alpha1.SubnetClaim, phase v1alpha1.ClaimPhase, reason, message string) error {
	wrote, err := write(ctx, a.client, c, word{phase, metav1.ConditionFalse, reason, message}, nil)
	if wrote {
		a.recorder.Eventf(c, nil, corev1.EventTypeWarning, reason, "Allocate", "%s", message)
	}

	return err
}

func (a *Allocator) tellAll(ctx context.Context, claims []v1alpha1.SubnetClaim, reason, message string) error {
	return a.each(claims, func(c *v1alpha1.SubnetClaim) error { return a.tell(ctx, c, v1alpha1.ClaimPending, reason, message) })
}

// each does something for every claim, several at once, in order of their
// start.
func (a *Allocator) each(claims []v1alpha1.SubnetClaim, do func(*v1alpha1.SubnetClaim) error) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		all  error
		room = make(chan struct{}, together)
	)
	for i := range claims {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			if err := do(&claims[i]); err != nil {
				mu.Lock()
				defer mu.Unlock()
				all = errors.Join(all, err)
			}
		})
	}
	wg.Wait()

	return all
}

// reasonOf names what kept a block from being reserved.
func reasonOf(err error) string {
	if _, ok := errors.AsType[*view.OwnerHasBlockError](err); ok {
		return decide.ReasonClusterIDTaken
	}
	if _, ok := errors.AsType[*cidr.Exhausted](err); ok {
		return decide.ReasonExhausted
	}
	if _, ok := errors.AsType[*cidr.Overlap](err); ok {
		return decide.ReasonTaken
	}

	return decide.ReasonPoolInvalid
}
