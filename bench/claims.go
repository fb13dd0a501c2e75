package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	claimed     = 2000 // per lap
	claimRounds = 3
)

// claims measures how fast claims are served, and what the API server could do
// at best: the same writes by a plain loop, with no controller at all. Laps differ by a tenth,
// so both take turns, in both orders, and the ratio is the median of the pairs.
func claims(b *board) error {
	return onControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		bed, err := newBed(ctx, u)
		if err != nil {
			return err
		}
		// The webhooks of the first manager stay, so pools of the plain loop come before it.
		for i := range claimRounds + 1 {
			if err := bed.pool(ctx, rawNamespace(i)); err != nil {
				return err
			}
		}
		var raw, served, ratio []float64
		for i := range claimRounds + 1 {
			var r, s float64
			err := inTurns(i, func() (err error) {
				r, err = bed.rawLap(ctx, rawNamespace(i))

				return err
			}, func() (err error) {
				s, err = bed.servedLap(ctx, u, i)

				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "  %.0f claims per s by a plain loop, %.0f served\n", r, s)
			if part := float64(bed.written) / float64(bed.served); part > 1.05 || part < 0.9 {
				return fmt.Errorf("the plain loop writes %d bytes for a claim, the manager %d: these are not the same writes", bed.written, bed.served)
			}
			if i > 0 { // the first round warms everything up
				raw, served, ratio = append(raw, r), append(served, s), append(ratio, s/r)
			}
		}

		b.show(result{"claims/raw", median(raw)}, result{"claims/served", median(served)}, result{"claims/ratio", median(ratio)})

		return nil
	})
}

// rawLap serves claims by a plain loop, while no manager runs. The next manager must not find them:
// their Subnets have no phase.
func (b *bed) rawLap(ctx context.Context, ns string) (float64, error) {
	raw, err := b.rawClaims(ctx, ns, claimed)
	if err != nil {
		return 0, err
	}
	b.written, err = b.size(ctx, ns, claimed)
	for _, kind := range []client.Object{&v1alpha1.SubnetClaim{}, &v1alpha1.Subnet{}} {
		err = errors.Join(err, b.DeleteAllOf(ctx, kind, client.InNamespace(ns)))
	}

	return raw, err
}

func rawNamespace(i int) string { return fmt.Sprintf("raw-%d", i) }

func claim(ns string, i int) *v1alpha1.SubnetClaim {
	return &v1alpha1.SubnetClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("c-%d", i)},
		Spec:       v1alpha1.SubnetClaimSpec{PoolRef: "p", ClusterID: fmt.Sprintf("c-%d", i), BlockSize: new(int32(24))},
	}
}

// rawClaims does what serving a claim takes: the claim, its Subnet, and the
// status of both, with the fields that the manager writes. What a write costs depends on its size.
func (b *bed) rawClaims(ctx context.Context, ns string, n int) (float64, error) {
	p := &v1alpha1.SubnetPool{}
	if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p"}, p); err != nil {
		return 0, err
	}

	return perSecond(n, func(i int) error {
		c := claim(ns, i)
		if err := b.Create(ctx, c); err != nil {
			return err
		}
		block := netip.MustParsePrefix(subnet(ns, i).Spec.CIDR)
		// It has a claimRef, which keeps the webhook, which does not run, from being called.
		s := ipamrules.NewSubnet(c, p, block, ipamrules.SubnetNames(p.Name, block, c.UID)[0], time.Now())
		if err := b.Create(ctx, s); err != nil {
			return err
		}
		ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: ipamrules.ReasonBound, Message: block.String() + " is allocated", ObservedGeneration: 1}
		s.Status = v1alpha1.SubnetStatus{Phase: v1alpha1.SubnetAllocated, UID: s.UID, ClaimUID: c.UID, AllocatedAt: new(metav1.Now())}
		meta.SetStatusCondition(&s.Status.Conditions, ready)
		if err := b.Status().Update(ctx, s); err != nil {
			return err
		}
		c.Status = v1alpha1.SubnetClaimStatus{
			Phase: v1alpha1.ClaimBound, AllocatedCIDR: s.Spec.CIDR, SubnetRef: s.Name, UID: c.UID, Message: ready.Message, ObservedGeneration: 1,
		}
		meta.SetStatusCondition(&c.Status.Conditions, ready)

		return b.Status().Update(ctx, c)
	})
}

// size is how many bytes a claim and its Subnet take together.
func (b *bed) size(ctx context.Context, ns string, i int) (int, error) {
	c := claim(ns, i)
	if err := b.Get(ctx, client.ObjectKeyFromObject(c), c); err != nil {
		return 0, err
	}
	s := &v1alpha1.Subnet{}
	if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: c.Status.SubnetRef}, s); err != nil {
		return 0, err
	}
	data, err := json.Marshal([]any{c, s})

	return len(data), err
}

// servedLap has claims served by a manager of its own, when that is warm.
func (b *bed) servedLap(ctx context.Context, u *cluster.Up, i int) (float64, error) {
	m, err := u.Manager(u.Administrator(), poolsOnly) //nolint:contextcheck // it ends when it is stopped
	if err != nil {
		return 0, err
	}
	defer m.Stop()
	if err := m.Await(); err != nil {
		return 0, err
	}
	if _, err := b.serve(ctx, m, fmt.Sprintf("warm-%d", i), claimed/10, claimed/10); err != nil {
		return 0, err
	}

	ns := fmt.Sprintf("served-%d", i)
	perSecond, err := b.serve(ctx, m, ns, claimed, claimed+claimed/10)
	if err != nil {
		return 0, err
	}
	b.served, err = b.size(ctx, ns, claimed)

	return perSecond, err
}

// serve counts from the first claim to the moment when all are bound.
func (b *bed) serve(ctx context.Context, m *cluster.Manager, ns string, n, inAll int) (float64, error) {
	if err := b.pool(ctx, ns); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := perSecond(n, func(i int) error { return b.Create(ctx, claim(ns, i)) }); err != nil {
		return 0, err
	}
	err := until(ctx, later, func(ctx context.Context) (bool, error) {
		// The count is cheap and nearly right: a write may succeed and its
		// answer get lost.
		bound, err := m.Value("subnetclaim_bind_duration_seconds_count")
		if err != nil || bound < 0.99*float64(inAll) {
			return false, err
		}

		return b.allBound(ctx, ns)
	})

	return float64(n) / time.Since(began).Seconds(), err
}

func (b *bed) allBound(ctx context.Context, ns string) (bool, error) {
	list := &v1alpha1.SubnetClaimList{}
	err := b.List(ctx, list, client.InNamespace(ns))

	return !slices.ContainsFunc(list.Items, func(c v1alpha1.SubnetClaim) bool { return c.Status.Phase != v1alpha1.ClaimBound }), err
}
