package gangs

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

// times are pods per second, by scheduler and lap.
type times [][]float64

// speed is a scheduler's median.
func (t times) speed(who int) float64 { return harness.Median(append([]float64{}, t[who]...)) }

// ratio is the median of the ratios of two contestants in the same lap: what else
// the machine does changes from lap to lap, and within one is much the same.
func (t times) ratio(who, base int) float64 {
	var ratios []float64
	for lap := range t[who] {
		ratios = append(ratios, t[who][lap]/t[base][lap])
	}

	return harness.Median(ratios)
}

// races has contestants run in turns. A control plane gets slower with what it has
// seen, so each lap starts with another one.
func (f *controlPlane) races(ctx context.Context, laps int, all ...scheduler) (times, error) {
	t := make(times, len(all))
	for lap := range laps {
		for i := range all {
			who := (lap + i) % len(all)
			took, err := f.race(ctx, all[who])
			if err != nil {
				return nil, err
			}
			t[who] = append(t[who], float64(all[who].pods)/took.Seconds())
		}
	}

	return t, nil
}

// race makes the pods, starts the scheduler, and returns how long it takes, from the
// start of its process to the last binding that a watch reports.
func (f *controlPlane) race(ctx context.Context, c scheduler) (time.Duration, error) {
	if err := f.crowd(ctx, c); err != nil {
		return 0, err
	}
	bound, stop := f.bound(ctx)
	defer stop()
	before, err := harness.CPU(f.apiserver)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	p, err := f.start(c.who) //nolint:contextcheck // it is stopped, not canceled
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := harness.Until(ctx, harness.ShortPoll, func(context.Context) (bool, error) { return bound.count() >= c.pods, nil }); err != nil {
		return 0, fmt.Errorf("%s has placed %d of %d pods: %w\n%s", c.who, bound.count(), c.pods, err, p.Output())
	}
	took := time.Since(began)
	spent, err := costs(f.apiserver, before, p)
	if err != nil {
		return 0, err
	}
	reached, err := phases(c.who, p, began)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(os.Stderr, "  %s: %d pods in gangs of %d after %.1f s; %s; after s: %sfirst binding seen %.2f\n",
		c.who, c.pods, c.size, took.Seconds(), spent, reached, bound.first().Sub(began).Seconds())
	p.Stop()

	return took, f.clear(ctx)
}

// costs are the processor times of the scheduler and of the control plane, which
// had used some before.
func costs(apiserver int, before float64, p *cluster.Scheduler) (string, error) {
	after, err := harness.CPU(apiserver)
	if err != nil {
		return "", err
	}
	own, err := harness.CPU(p.PID())

	return fmt.Sprintf("CPU s: scheduler %.1f, API server with etcd %.1f", own/1000, (after-before)/1000), err
}

// phases are the times of the phases that arbor-scheduler logs, in seconds after its start.
func phases(who string, p *cluster.Scheduler, began time.Time) (string, error) {
	if who != ours {
		return "", nil
	}
	var text strings.Builder
	for _, phase := range []string{"groups_synced", "first_pop", "last_cycle"} {
		at, err := p.Value(fmt.Sprintf("arbor_gang_phase_timestamp_seconds{phase=%q}", phase))
		if err != nil {
			return "", err
		}
		if at > 0 {
			fmt.Fprintf(&text, "%s %.2f, ", phase, at-float64(began.UnixNano())/float64(time.Second))
		}
	}

	return text.String(), nil
}

// bindings counts the pods that have a node.
type bindings struct {
	n, at atomic.Int64
}

func (b *bindings) count() int { return int(b.n.Load()) }

// first is when the first one was seen.
func (b *bindings) first() time.Time { return time.Unix(0, b.at.Load()) }

func (b *bindings) add() {
	b.at.CompareAndSwap(0, time.Now().UnixNano())
	b.n.Add(1)
}

// bound follows which pods have a node.
func (f *controlPlane) bound(ctx context.Context) (b *bindings, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	b = &bindings{}
	informer := cache.NewSharedIndexInformer(
		cache.NewFilteredListWatchFromClient(f.kc.CoreV1().RESTClient(), "pods", namespace, func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }),
		&corev1.Pod{}, 0, cache.Indexers{})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { b.add() }})
	go informer.Run(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)

	return b, cancel
}
