package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	decide "github.com/arbor-control/arbor/internal/decide/claim"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	claimed     = 2000 // per lap
	claimRounds = 3
	full        = 1 << 16
	measured    = 50000 // Subnets in the pool when it is measured
	small       = 100
	events      = 300
	poolsOnly   = "--controllers=subnets"

	soon, later = 10 * time.Millisecond, 200 * time.Millisecond
)

// A bed is a control plane that serves the address API.
type bed struct {
	client.Client

	// written and served are the sizes of a claim with its Subnet, by a plain loop and by a manager.
	written, served int
}

func newBed(ctx context.Context, u *cluster.Up) (*bed, error) {
	c, err := u.NewClient(nil)
	if err != nil {
		return nil, err
	}
	err = cluster.Define(ctx, c, v1alpha1.GroupVersion, v1alpha1.SubnetPoolKind, v1alpha1.SubnetKind, v1alpha1.SubnetClaimKind, v1alpha1.SubnetPoolClaimKind)

	return &bed{Client: c}, err
}

// pool makes a namespace with a pool in it.
func (b *bed) pool(ctx context.Context, ns string) error {
	if err := b.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return err
	}

	return b.Create(ctx, &v1alpha1.SubnetPool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}, Spec: v1alpha1.SubnetPoolSpec{CIDR: "10.0.0.0/8"}})
}

// subnet is the i-th /24 of such a pool.
func subnet(ns string, i int) *v1alpha1.Subnet {
	return &v1alpha1.Subnet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("s-%d", i)},
		Spec:       v1alpha1.SubnetSpec{PoolRef: "p", CIDR: fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255), ClusterID: fmt.Sprintf("c-%d", i)},
	}
}

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

// rawLap serves claims by a plain loop, while no manager runs. The next manager must not find
// them: nothing has judged them.
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
		s := decide.Subnet(c, p, block, decide.Names(p.Name, block, c.UID)[0], time.Now())
		if err := b.Create(ctx, s); err != nil {
			return err
		}
		ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: decide.ReasonBound, Message: block.String() + " is allocated", ObservedGeneration: 1}
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

// pool measures what a large pool costs: the manager's time for an event there
// and in a small one, its memory, and the size of the pool's object.
func pool(b *board) error {
	return onControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		bed, err := newBed(ctx, u)
		if err != nil {
			return err
		}
		for ns, n := range map[string]int{"small": small, "large": measured} {
			if err := bed.pool(ctx, ns); err != nil {
				return err
			}
			if err := bed.fill(ctx, ns, 0, n); err != nil {
				return err
			}
		}
		m, err := u.Manager(u.Administrator(), poolsOnly, "--webhooks=false")
		if err != nil {
			return err
		}
		defer m.Stop()
		if err := m.Await(); err != nil {
			return err
		}

		return bed.measurePools(ctx, b, m)
	}, "--unsafe-no-fsync")
}

// fill makes Subnets that nobody has judged.
func (b *bed) fill(ctx context.Context, ns string, from, to int) error {
	_, err := perSecond(to-from, func(i int) error { return b.Create(ctx, subnet(ns, from+i-1)) })

	return err
}

// judged waits until all Subnets of a pool have a verdict and are counted.
func (b *bed) judged(ctx context.Context, m *cluster.Manager, ns string, n, inAll int) error {
	return until(ctx, later, func(ctx context.Context) (bool, error) {
		p := &v1alpha1.SubnetPool{}
		if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p"}, p); err != nil {
			return false, err
		}
		done, err := m.Value(`controller_runtime_reconcile_total{controller="subnet",result="success"}`)

		return p.Status.AllocatedCount == int64(n) && done >= float64(2*inAll), err
	})
}

func (b *bed) measurePools(ctx context.Context, figures *board, m *cluster.Manager) error {
	for ns, n := range map[string]int{"small": small, "large": measured} {
		// Each Subnet is looked at when it comes, and when its verdict does.
		if err := b.judged(ctx, m, ns, n, small+measured); err != nil {
			return err
		}
	}
	cost := map[string]float64{}
	for _, round := range []string{"warm", "small", "large"} {
		ns := strings.Replace(round, "warm", "large", 1)
		spent, err := b.costOfEvents(ctx, m, ns)
		if err != nil {
			return err
		}
		cost[round] = spent
	}
	memory, err := procField(m.PID(), "VmRSS:")
	if err != nil {
		return err
	}
	figures.show(
		result{"pool/cpu-per-event-100", cost["small"]},
		result{"pool/cpu-per-event-50000", cost["large"]},
		result{"pool/ratio-50000-to-100", cost["large"] / cost["small"]},
		result{"pool/memory-50000", memory / 1024},
	)

	if err := b.fill(ctx, "large", measured, full); err != nil {
		return err
	}
	if err := b.judged(ctx, m, "large", full, small+full); err != nil {
		return err
	}
	p := &v1alpha1.SubnetPool{}
	if err := b.Get(ctx, client.ObjectKey{Namespace: "large", Name: "p"}, p); err != nil {
		return err
	}
	data, err := json.Marshal(p)

	figures.show(result{"pool/object-65536", float64(len(data)) / 1024})

	return err
}

// costOfEvents is the manager's processor time, in milliseconds, for one Subnet
// that comes, is judged, is counted, goes, and is counted again.
func (b *bed) costOfEvents(ctx context.Context, m *cluster.Manager, ns string) (float64, error) {
	before, err := cpu(m.PID())
	if err != nil {
		return 0, err
	}
	p := &v1alpha1.SubnetPool{}
	counted := func(want func() bool) error {
		return until(ctx, soon, func(ctx context.Context) (bool, error) {
			err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p"}, p)

			return want(), err
		})
	}
	if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p"}, p); err != nil {
		return 0, err
	}
	had := p.Status.AllocatedCount
	for range events {
		s := subnet(ns, full-1)
		if err := b.Create(ctx, s); err != nil {
			return 0, err
		}
		if err := counted(func() bool { return p.Status.AllocatedCount == had+1 }); err != nil {
			return 0, err
		}
		if err := b.Delete(ctx, s); err != nil {
			return 0, err
		}
		if err := counted(func() bool { return p.Status.AllocatedCount == had }); err != nil {
			return 0, err
		}
	}
	after, err := cpu(m.PID())

	return (after - before) / events, err
}

// cpu is the processor time of a process so far, in milliseconds.
func cpu(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const user, system, tick = 11, 12, 10 // fields behind the name, and a tick in milliseconds
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	var sum float64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, err
		}
		sum += n * tick
	}

	return sum, nil
}

// procField is a figure in kB from the status of a process.
func procField(pid int, key string) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}

	return strconv.ParseFloat(strings.TrimSuffix(field(string(data), key), " kB"), 64)
}
