package ipam

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	manyPools    = 5000
	sampledPools = 100
)

// Pools measures what it costs to create a pool in a namespace without any, and in one
// with 5,000: the request with its webhook, and the manager's processor time until the
// pool is ready.
func Pools(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		plane, err := newControlPlane(ctx, u)
		if err != nil {
			return err
		}
		m, err := u.Manager(u.Administrator(), poolsOnly)
		if err != nil {
			return err
		}
		defer m.Stop()
		if err := m.Await(); err != nil {
			return err
		}
		// Manager and API server are warm afterward.
		if _, err := plane.costOfPools(ctx, m, "warm", 0); err != nil {
			return err
		}
		first, err := plane.costOfPools(ctx, m, "many", 0)
		if err != nil {
			return err
		}
		if err := plane.fillPools(ctx, "many", sampledPools, manyPools); err != nil {
			return err
		}
		last, err := plane.costOfPools(ctx, m, "many", manyPools)
		if err != nil {
			return err
		}
		b.Show(
			harness.Result{Name: "pools/create-first", Value: first.request}, harness.Result{Name: "pools/create-5000th", Value: last.request},
			harness.Result{Name: "pools/ratio-5000th-to-first", Value: last.request / first.request},
			harness.Result{Name: "pools/cpu-first", Value: first.cpu}, harness.Result{Name: "pools/cpu-5000th", Value: last.cpu},
			harness.Result{Name: "pools/cpu-ratio-5000th-to-first", Value: last.cpu / first.cpu},
		)

		return nil
	})
}

// poolCost is what a pool costs, in milliseconds.
type poolCost struct {
	request float64 // the median of the requests that create one
	cpu     float64 // processor time of the manager until it is ready
}

// ithPool is a root that overlaps no other.
func ithPool(ns string, i int) *v1alpha1.SubnetPool {
	return &v1alpha1.SubnetPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("p-%d", i)},
		Spec:       v1alpha1.SubnetPoolSpec{CIDR: fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255)},
	}
}

// costOfPools creates some pools, one after the other, and waits until all are ready.
// The namespace is created with the first one.
func (b *controlPlane) costOfPools(ctx context.Context, m *cluster.Manager, ns string, from int) (poolCost, error) {
	if from == 0 {
		if err := b.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			return poolCost{}, err
		}
	}
	before, err := harness.CPU(m.PID())
	if err != nil {
		return poolCost{}, err
	}
	var took []time.Duration
	for i := range sampledPools {
		began := time.Now()
		if err := b.Create(ctx, ithPool(ns, from+i)); err != nil {
			return poolCost{}, err
		}
		took = append(took, time.Since(began))
	}
	if err := b.poolsReady(ctx, ns, from, from+sampledPools); err != nil {
		return poolCost{}, err
	}
	after, err := harness.CPU(m.PID())
	slices.Sort(took)

	return poolCost{
		request: float64(took[len(took)/2].Microseconds()) / 1000,
		cpu:     (after - before) / sampledPools,
	}, err
}

// fillPools creates pools as fast as it can, and waits until all are ready.
func (b *controlPlane) fillPools(ctx context.Context, ns string, from, to int) error {
	if _, err := harness.PerSecond(to-from, func(i int) error { return b.Create(ctx, ithPool(ns, from+i-1)) }); err != nil {
		return err
	}

	return b.poolsReady(ctx, ns, from, to)
}

// poolsReady waits until pools have their ranges. Those that have are not read again.
func (b *controlPlane) poolsReady(ctx context.Context, ns string, from, to int) error {
	for i := from; i < to; i++ {
		p := ithPool(ns, i)
		err := harness.Until(ctx, harness.ShortPoll, func(ctx context.Context) (bool, error) {
			err := b.Get(ctx, client.ObjectKeyFromObject(p), p)

			return p.Open() == p.Spec.CIDR, err
		})
		if err != nil {
			return fmt.Errorf("pool %s is not ready: %w", p.Name, err)
		}
	}

	return nil
}
