package subnetpool

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/kube"
)

// restores knows when something of a restored pool last arrived.
type restores struct {
	grace   time.Duration
	subnets func(pool types.NamespacedName) time.Time
	now     func() time.Time

	mu sync.Mutex
	// claims are the times when claims of restored pools arrived.
	claims map[types.NamespacedName]time.Time
	// seen are the restored pools that this process knows.
	seen map[types.NamespacedName]seenPool
}

// A seenPool is a pool, and when this process first saw it. That time does not depend on the
// clock of the API server, as the creationTimestamp does.
type seenPool struct {
	uid types.UID
	at  time.Time
}

func newRestores(grace time.Duration, subnets func(types.NamespacedName) time.Time) *restores {
	return &restores{
		grace: grace, subnets: subnets, now: time.Now,
		claims: map[types.NamespacedName]time.Time{}, seen: map[types.NamespacedName]seenPool{},
	}
}

// claimArrived records that a claim of a restored pool was created.
func (r *restores) claimArrived(pool types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims[pool] = r.now()
}

// remaining returns how long a restore lasts at least, if nothing else arrives. It counts
// from the last arrival, and from when this process first saw the pool: for a manager whose
// clock is ahead of that of the API server, the restore would be over at once.
func (r *restores) remaining(p *v1alpha1.SubnetPool) time.Duration {
	key := client.ObjectKeyFromObject(p)
	last := p.CreationTimestamp.Time
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[key].uid != p.UID {
		r.seen[key] = seenPool{p.UID, r.now()}
	}
	for _, at := range []time.Time{r.seen[key].at, r.subnets(key), r.claims[key]} {
		if at.After(last) {
			last = at
		}
	}

	return last.Add(r.grace).Sub(r.now())
}

func (r *restores) forget(pool types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.claims, pool)
	delete(r.seen, pool)
}

// endRestore lets a restored pool allocate again when all claims with a recorded block
// have it and nothing has arrived for the grace period. The event of a claim that is
// bound or deleted comes back here.
func (g *Guard) endRestore(ctx context.Context, p *v1alpha1.SubnetPool) (reconcile.Result, error) {
	if !ipamrules.IsRestoring(p) {
		g.restores.forget(client.ObjectKeyFromObject(p))

		return reconcile.Result{}, nil
	}
	if left := g.restores.remaining(p); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if waits, err := g.recordedWaits(ctx, p); err != nil || waits {
		return reconcile.Result{}, err
	}
	before := p.DeepCopy()
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.PoolUIDAnnotation, string(p.UID))
	if err := g.patch(ctx, p, before); err != nil {
		return reconcile.Result{}, err
	}
	g.recorder.Eventf(p, nil, corev1.EventTypeNormal, "Restored", "Restore",
		"all claims with a recorded block have it, and nothing has arrived for %s: the pool allocates again", g.restores.grace)

	return reconcile.Result{}, nil
}

// recordedWaits reports whether a claim waits for the block of this pool that it had.
func (g *Guard) recordedWaits(ctx context.Context, p *v1alpha1.SubnetPool) (bool, error) {
	list := &v1alpha1.SubnetClaimList{}
	err := g.client.List(ctx, list, client.InNamespace(p.Namespace), client.MatchingFields{kube.ClaimWaitingIndexKey: p.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("cannot list SubnetClaims: %w", err)
	}
	for i := range list.Items {
		if _, recorded := ipamrules.RecordedBlock(&list.Items[i]); recorded {
			return true, nil
		}
	}

	return false, nil
}
