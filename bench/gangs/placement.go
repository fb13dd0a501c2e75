package gangs

import (
	"context"
	"fmt"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

// Placement measures how fast gangs are placed, against kube-scheduler with the same
// pods without groups.
func Placement(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		f, err := newControlPlane(ctx, u, b.Scale)
		if err != nil {
			return err
		}
		if err := f.grow(ctx, 0, f.scaled(farmNodes)); err != nil {
			return err
		}
		if err := f.manyGangs(ctx, b); err != nil {
			return err
		}
		if err := f.answers(b); err != nil {
			return err
		}

		return f.oneGang(ctx, b)
	}, "--unsafe-no-fsync")
}

// manyGangs places a pod for each GPU: without groups, in gangs of ten, and in
// gangs of one.
func (f *controlPlane) manyGangs(ctx context.Context, b *harness.Board) error {
	crowd := f.scaled(farmNodes) * nodeGPUs / gangSize * gangSize
	t, err := f.races(ctx, b.Laps,
		scheduler{who: stock, pods: crowd, gpus: 1},
		scheduler{who: ours, pods: crowd, size: gangSize, gpus: 1},
		scheduler{who: ours, pods: crowd, size: 1, gpus: 1})
	if err != nil {
		return err
	}
	const base, tens, ones = 0, 1, 2
	b.Show(
		harness.Result{Name: "gangs/stock", Value: t.speed(base)},
		harness.Result{Name: "gangs/400x10", Value: t.speed(tens)},
		harness.Result{Name: "gangs/4000x1", Value: t.speed(ones)},
		harness.Result{Name: "gangs/400x10-to-stock", Value: t.ratio(tens, base)},
		harness.Result{Name: "gangs/4000x1-to-stock", Value: t.ratio(ones, base)},
	)

	return nil
}

// oneGang places a pod on each node, all of them one gang.
func (f *controlPlane) oneGang(ctx context.Context, b *harness.Board) error {
	nodes := f.scaled(wide)
	if err := f.grow(ctx, f.scaled(farmNodes), nodes); err != nil {
		return err
	}
	t, err := f.races(ctx, b.Laps,
		scheduler{who: stock, pods: nodes, gpus: nodeGPUs},
		scheduler{who: ours, pods: nodes, size: nodes, gpus: nodeGPUs})
	if err != nil {
		return fmt.Errorf("one gang of %d: %w", nodes, err)
	}
	const base, whole = 0, 1
	b.Show(
		harness.Result{Name: "gangs/512-stock", Value: t.speed(base)},
		harness.Result{Name: "gangs/512-in-one", Value: t.speed(whole)},
		harness.Result{Name: "gangs/512-in-one-to-stock", Value: t.ratio(whole, base)},
	)

	return nil
}
