package main

import (
	"context"
	"fmt"

	"github.com/arbor-control/arbor/test/cluster"
)

// gangs measures how fast gangs are placed, against kube-scheduler with the same
// pods without groups.
func gangs(b *board) error {
	return onControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		f, err := newFarm(ctx, u, b.scale)
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
func (f *farm) manyGangs(ctx context.Context, b *board) error {
	crowd := f.scaled(farmNodes) * nodeGPUs / gangSize * gangSize
	t, err := f.races(ctx, b.laps,
		contestant{who: stock, pods: crowd, gpus: 1},
		contestant{who: ours, pods: crowd, size: gangSize, gpus: 1},
		contestant{who: ours, pods: crowd, size: 1, gpus: 1})
	if err != nil {
		return err
	}
	const base, tens, ones = 0, 1, 2
	b.show(
		result{"gangs/stock", t.speed(base)},
		result{"gangs/400x10", t.speed(tens)},
		result{"gangs/4000x1", t.speed(ones)},
		result{"gangs/400x10-to-stock", t.ratio(tens, base)},
		result{"gangs/4000x1-to-stock", t.ratio(ones, base)},
	)

	return nil
}

// oneGang places a pod on each node, all of them one gang.
func (f *farm) oneGang(ctx context.Context, b *board) error {
	nodes := f.scaled(wide)
	if err := f.grow(ctx, f.scaled(farmNodes), nodes); err != nil {
		return err
	}
	t, err := f.races(ctx, b.laps,
		contestant{who: stock, pods: nodes, gpus: nodeGPUs},
		contestant{who: ours, pods: nodes, size: nodes, gpus: nodeGPUs})
	if err != nil {
		return fmt.Errorf("one gang of %d: %w", nodes, err)
	}
	const base, whole = 0, 1
	b.show(
		result{"gangs/512-stock", t.speed(base)},
		result{"gangs/512-in-one", t.speed(whole)},
		result{"gangs/512-in-one-to-stock", t.ratio(whole, base)},
	)

	return nil
}
