package gangs

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
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	verdicts = 7 // rounds of which the middle one counts
	waiters  = 200
	gangSize = 10
)

// Waiting measures what gangs cost that do not fit: how soon their pods report
// it, and how often they are tried again when GPUs become free.
func Waiting(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		f, err := newControlPlane(ctx, u, b.Scale)
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
		b.Show(
			harness.Result{Name: "gangs/verdict-stock", Value: plain},
			harness.Result{Name: "gangs/verdict", Value: whole},
			harness.Result{Name: "gangs/verdict-to-stock", Value: whole / plain},
		)
		gangs := f.scaled(waiters)
		tried, err := f.freed(ctx, gangs)
		if err != nil {
			return err
		}
		b.Show(harness.Result{Name: "gangs/cycles-per-waiting-gang", Value: tried / float64(gangs)})

		return nil
	}, "--unsafe-no-fsync")
}

// verdict is how long it takes from the first of ten pods to the last with a condition that there
// is no room, in milliseconds.
func (f *controlPlane) verdict(ctx context.Context, who string, size int) (float64, error) {
	p, err := f.start(who) //nolint:contextcheck // it is stopped, not cancelled
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
		if err := f.crowd(ctx, scheduler{who: who, pods: gangSize, size: size, gpus: 1}); err != nil {
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
func (f *controlPlane) told(ctx context.Context, n int) error {
	return harness.Until(ctx, harness.ShortPoll, func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		if err := f.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{waitingLabel}); err != nil {
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
func (f *controlPlane) leave(ctx context.Context, which client.ListOption) error {
	now := client.GracePeriodSeconds(0)
	if err := f.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), which.(client.DeleteAllOfOption), now); err != nil { //nolint:forcetypeassert // labels are both
		return err
	}
	if err := f.DeleteAllOf(ctx, &v2alpha2.PodGroup{}, client.InNamespace(namespace)); err != nil {
		return err
	}

	return harness.Until(ctx, harness.ShortPoll, func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		err := f.List(ctx, &list, client.InNamespace(namespace), which, client.Limit(1))

		return err == nil && len(list.Items) == 0, err
	})
}

// freed has many gangs wait, frees room for one, and counts how often gangs are
// tried until all is quiet again.
func (f *controlPlane) freed(ctx context.Context, gangs int) (float64, error) {
	p, err := f.start(ours) //nolint:contextcheck // it is stopped, not cancelled
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := f.crowd(ctx, scheduler{who: ours, pods: gangs * gangSize, size: gangSize, gpus: 1}); err != nil {
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
		if err := f.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("full-%d", i)}}, client.GracePeriodSeconds(0)); err != nil {
			return 0, err
		}
	}
	if err := harness.Until(ctx, harness.ShortPoll, func(context.Context) (bool, error) { return bound.count() >= had+gangSize, nil }); err != nil {
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
	err := harness.Until(ctx, harness.LongPoll, func(context.Context) (bool, error) {
		now, err := p.Value("arbor_gang_cycles_total")
		if now != last {
			last, since = now, time.Now()
		}

		return time.Since(since) > 12*time.Second, err
	})

	return last, err
}
