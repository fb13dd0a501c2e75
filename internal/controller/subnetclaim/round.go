package subnetclaim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/internal/decide/ipam/poolblocks"
)

// A round serves the claims of one pool once.
type round struct {
	*Allocator

	key  types.NamespacedName
	pool *v1alpha1.SubnetPool // nil if there is none
	now  time.Time

	mu    sync.Mutex
	after time.Duration // until the next round, 0 if none is needed
}

// again has the next round begin after at most this time.
func (r *round) again(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.after == 0 || after < r.after {
		r.after = after
	}
}

// serve chooses blocks for the claims one after the other, in their order, and then
// creates the Subnets of all of them at once.
func (r *round) serve(ctx context.Context, claims []v1alpha1.SubnetClaim) error {
	if w := unavailable(r.key.Name, r.pool); w != nil {
		each(ctx, claims, func(c *v1alpha1.SubnetClaim) {
			if !r.view.Serves(r.key, string(c.UID)) {
				r.report(ctx, c, *w)
			}
		})

		return nil
	}
	if pause := r.others.pause(r.key, r.now); pause > 0 {
		r.again(pause)

		return nil
	}
	if r.others.doubts(r.key, r.now) {
		if err := r.recount(ctx, r.key); err != nil {
			r.others.lost(r.key, r.now)

			return fmt.Errorf("cannot count pool %s again: %w", r.key, err)
		}
	}
	choices := r.choose(claims)
	if slices.ContainsFunc(choices, func(c choice) bool { return c.refusal == nil }) {
		// Blocks that are taken are counted without waiting for their events.
		defer r.enqueue(ctx, r.key)
	}
	each(ctx, choices, func(c *choice) {
		if c.refusal != nil {
			r.report(ctx, c.claim, *c.refusal)
		} else {
			r.create(ctx, c)
		}
	})

	return nil
}

// A choice is the block that is reserved for a claim, or why there is none.
type choice struct {
	claim   *v1alpha1.SubnetClaim
	block   netip.Prefix
	refusal *outcome
}

// choose reserves blocks for the claims that have none and need not wait.
func (r *round) choose(claims []v1alpha1.SubnetClaim) []choice {
	var choices []choice
	for i := range claims {
		c := &claims[i]
		if r.view.Serves(r.key, string(c.UID)) {
			continue
		}
		if delay := r.backoff.wait(r.key, c.UID, r.now); delay > 0 {
			r.again(delay)

			continue
		}
		block, refusal, err := r.reserve(c)
		if errors.Is(err, ledger.ErrClosed) || errors.Is(err, ledger.ErrNoRange) {
			// The feed brings the pool to the view at any moment, or takes it away.
			r.again(firstDelay)

			break
		}
		choices = append(choices, choice{c, block, refusal})
	}

	return choices
}

// reserve takes a block for a claim. Whatever the error is, the outcome reports it to the user.
func (r *round) reserve(c *v1alpha1.SubnetClaim) (netip.Prefix, *outcome, error) {
	prefix, _ := poolblocks.RangeOf(r.pool)
	wish, refusal := ipamrules.ReadClaim(c, r.pool, prefix)
	if refusal != nil {
		return netip.Prefix{}, &outcome{v1alpha1.ClaimError, notReady, refusal.Reason, refusal.Message}, nil
	}
	if ipamrules.IsRestoring(r.pool) && !wish.Recorded {
		return netip.Prefix{}, pending(ipamrules.ReasonPoolRestoring, fmt.Sprintf(
			"pool %s is being restored and allocates only recorded blocks; once everything is restored, run: arbor pools restored %s", r.pool.Name, r.pool.Name)), nil
	}
	block, err := r.view.Reserve(r.key, ledger.Request{
		Claim: string(c.UID), Owner: c.Spec.ClusterID, Backs: ipamrules.ChildPoolOf(c),
		Exact: wish.Exact, Length: wish.Length, Strategy: ipamrules.AllocationStrategy(r.pool.Spec.Strategy),
	}, r.now)
	if err != nil {
		return netip.Prefix{}, why(r.pool.Name, wish, r.coolingOr(err)), err
	}

	return block, nil, nil
}

// report writes the status of a claim that has no block, unless it is like that
// already.
func (r *round) report(ctx context.Context, c *v1alpha1.SubnetClaim, w outcome) {
	next := w.on(c)
	if equality.Semantic.DeepEqual(c.Status, next.Status) {
		return
	}
	err := r.api.WriteStatus(ctx, next)
	switch {
	case err == nil:
		r.api.Warn(c, w.reason, w.message)
	case apierrors.IsNotFound(err):
	default:
		// A conflict too: the cache is behind. The next round reads the claim again.
		r.again(firstDelay)
		logr.FromContextOrDiscard(ctx).V(verbosity(err)).Info("Cannot write the status of a SubnetClaim; retrying", "claim", c.Name, "reason", w.reason, "error", err.Error())
	}
}

// verbosity is 1 for an error that is part of normal operation.
func verbosity(err error) int {
	if apierrors.IsConflict(err) {
		return 1
	}

	return 0
}

// each calls do for each item, several at once, until the context ends.
func each[T any](ctx context.Context, items []T, do func(*T)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, together)
	for i := range items {
		if ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(&items[i])
		})
	}
	wg.Wait()
}
