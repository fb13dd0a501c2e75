package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	verdicts = 7 // rounds of which the middle one counts
	waiters  = 200
	gangSize = 10
)

// gangsWait measures what gangs cost that do not fit: how soon their pods report
// it, and how often they are tried again when GPUs become free.
func gangsWait(b *board) error {
	return onControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		f, err := newFarm(ctx, u, b.scale)
		if err != nil {
			return err
		}
		if err := f.fill(ctx, f.scaled(wide)); err != nil {
			return err
		}
		plain, err := f.verdict(ctx, stock, 0)
		if err != nil {
			return err
		}
		whole, err := f.verdict(ctx, ours, gangSize)
		if err != nil {
			return err
		}
		b.show(
			result{"gangs/verdict-stock", plain},
			result{"gangs/verdict", whole},
			result{"gangs/verdict-to-stock", whole / plain},
		)
		gangs := f.scaled(waiters)
		tried, err := f.freed(ctx, gangs)
		if err != nil {
			return err
		}
		b.show(result{"gangs/cycles-per-waiting-gang", tried / float64(gangs)})

		return nil
	}, "--unsafe-no-fsync")
}

// verdict is how long it takes from the first of ten pods to the last with a condition that there
// is no room, in milliseconds.
func (f *farm) verdict(ctx context.Context, who string, size int) (float64, error) {
	p, err := f.start(who) //nolint:contextcheck // it is stopped, not canceled
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := p.Await(); err != nil {
		return 0, err
	}
	var took []float64
	for range verdicts {
		began := time.Now()
		if err := f.crowd(ctx, contestant{who: who, pods: gangSize, size: size, gpus: 1}); err != nil {
			return 0, err
		}
		if err := f.told(ctx, gangSize); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
		if err := f.leave(ctx, client.HasLabels{waitingLabel}); err != nil {
			return 0, err
		}
	}
	slices.Sort(took)

	return took[len(took)/2], nil
}

// told waits until n pods have the condition that there is no room for them.
func (f *farm) told(ctx context.Context, n int) error {
	return until(ctx, soon, func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		if err := f.List(ctx, &list, client.InNamespace(ground), client.HasLabels{waitingLabel}); err != nil {
			return false, err
		}
		know := 0
		for _, pod := range list.Items {
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			}) {
				know++
			}
		}

		return know >= n, nil
	})
}

// leave removes pods and all groups.
func (f *farm) leave(ctx context.Context, which client.ListOption) error {
	now := client.GracePeriodSeconds(0)
	if err := f.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ground), which.(client.DeleteAllOfOption), now); err != nil { //nolint:forcetypeassert // labels are both
		return err
	}
	if err := f.DeleteAllOf(ctx, &v2alpha2.PodGroup{}, client.InNamespace(ground)); err != nil {
		return err
	}

	return until(ctx, soon, func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		err := f.List(ctx, &list, client.InNamespace(ground), which, client.Limit(1))

		return err == nil && len(list.Items) == 0, err
	})
}

// freed has many gangs wait, frees room for one, and counts how often gangs are
// tried until all is quiet again.
func (f *farm) freed(ctx context.Context, gangs int) (float64, error) {
	p, err := f.start(ours) //nolint:contextcheck // it is stopped, not canceled
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := f.crowd(ctx, contestant{who: ours, pods: gangs * gangSize, size: gangSize, gpus: 1}); err != nil {
		return 0, err
	}
	if err := f.told(ctx, gangs*gangSize); err != nil {
		return 0, fmt.Errorf("not all gangs have a condition: %w\n%s", err, p.Output())
	}
	before, err := quiet(ctx, p)
	if err != nil {
		return 0, err
	}
	bound, stop := f.bound(ctx)
	defer stop()
	had := bound.count()
	for i := range gangSize {
		if err := f.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ground, Name: fmt.Sprintf("full-%d", i)}}, client.GracePeriodSeconds(0)); err != nil {
			return 0, err
		}
	}
	if err := until(ctx, soon, func(context.Context) (bool, error) { return bound.count() >= had+gangSize, nil }); err != nil {
		return 0, fmt.Errorf("no gang took the place that was freed: %w\n%s", err, p.Output())
	}
	after, err := quiet(ctx, p)
	fmt.Fprintf(os.Stderr, "  %d gangs waited, one got a place, gangs were tried %.0f times\n", gangs, after-before)

	return after - before, err
}

// quiet waits until no gang is tried any more, and returns how often any was.
// Gangs pause for ten seconds at most.
func quiet(ctx context.Context, p *cluster.Scheduler) (float64, error) {
	last, since := -1.0, time.Now()
	err := until(ctx, later, func(context.Context) (bool, error) {
		now, err := p.Value("arbor_gang_cycles_total")
		if now != last {
			last, since = now, time.Now()
		}

		return time.Since(since) > 12*time.Second, err
	})

	return last, err
}
