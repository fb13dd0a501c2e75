package ipam

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	full      = 1 << 16
	measured  = 50000 // Subnets in the pool when it is measured
	small     = 100
	events    = 300
	poolsOnly = "--controllers=subnets"
)

// A controlPlane is a control plane that serves the address API.
type controlPlane struct {
	client.Client

	// written and served are the sizes of a claim with its Subnet, by a plain loop and by a manager.
	written, served int
}

func newControlPlane(ctx context.Context, u *cluster.Up) (*controlPlane, error) {
	c, err := u.NewClient(nil)
	if err != nil {
		return nil, err
	}
	err = cluster.Define(ctx, c, v1alpha1.GroupVersion, v1alpha1.SubnetPoolKind, v1alpha1.SubnetKind, v1alpha1.SubnetClaimKind, v1alpha1.SubnetPoolClaimKind)

	return &controlPlane{Client: c}, err
}

// pool makes a namespace with a pool in it.
func (b *controlPlane) pool(ctx context.Context, ns string) error {
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

// Pool measures what a large pool costs: the manager's time for an event there
// and in a small one, its memory, and the size of the pool's object.
func Pool(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		plane, err := newControlPlane(ctx, u)
		if err != nil {
			return err
		}
		for ns, n := range map[string]int{"small": small, "large": measured} {
			if err := plane.pool(ctx, ns); err != nil {
				return err
			}
			if err := plane.fill(ctx, ns, 0, n); err != nil {
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

		return plane.measurePools(ctx, b, m)
	}, "--unsafe-no-fsync")
}

// fill creates Subnets without a phase.
func (b *controlPlane) fill(ctx context.Context, ns string, from, to int) error {
	_, err := harness.PerSecond(to-from, func(i int) error { return b.Create(ctx, subnet(ns, from+i-1)) })

	return err
}

// judged waits until all Subnets of a pool have a phase and are counted.
func (b *controlPlane) judged(ctx context.Context, m *cluster.Manager, ns string, n, inAll int) error {
	return harness.Until(ctx, harness.LongPoll, func(ctx context.Context) (bool, error) {
		p := &v1alpha1.SubnetPool{}
		if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: "p"}, p); err != nil {
			return false, err
		}
		done, err := m.Value(`controller_runtime_reconcile_total{controller="subnet",result="success"}`)

		return p.Status.AllocatedCount == int64(n) && done >= float64(2*inAll), err
	})
}

func (b *controlPlane) measurePools(ctx context.Context, figures *harness.Board, m *cluster.Manager) error {
	for ns, n := range map[string]int{"small": small, "large": measured} {
		// Each Subnet is reconciled when it is created, and when its phase is written.
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
	memory, err := harness.ProcessKilobytes(m.PID(), "VmRSS:")
	if err != nil {
		return err
	}
	figures.Show(
		harness.Result{Name: "pool/cpu-per-event-100", Value: cost["small"]},
		harness.Result{Name: "pool/cpu-per-event-50000", Value: cost["large"]},
		harness.Result{Name: "pool/ratio-50000-to-100", Value: cost["large"] / cost["small"]},
		harness.Result{Name: "pool/memory-50000", Value: memory / 1024},
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

	figures.Show(harness.Result{Name: "pool/object-65536", Value: float64(len(data)) / 1024})

	return err
}

// costOfEvents is the manager's processor time, in milliseconds, for one Subnet that is created,
// gets its phase, is counted, is deleted, and is counted again.
func (b *controlPlane) costOfEvents(ctx context.Context, m *cluster.Manager, ns string) (float64, error) {
	before, err := harness.CPU(m.PID())
	if err != nil {
		return 0, err
	}
	p := &v1alpha1.SubnetPool{}
	counted := func(want func() bool) error {
		return harness.Until(ctx, harness.ShortPoll, func(ctx context.Context) (bool, error) {
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
	after, err := harness.CPU(m.PID())

	return (after - before) / events, err
}
