package gangs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	preemptors = 64              // pods of the gang, each with all GPUs of a node
	preemptFor = 3 * time.Minute // how long the gang has
	settled    = 3 * time.Second // without an event after the gang is bound
	important  = "bench-important"
)

// Preemption measures how a gang displaces less important pods where every GPU
// is in use.
func Preemption(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		f, err := newControlPlane(ctx, u, b.Scale)
		if err != nil {
			return err
		}
		if err := f.fill(ctx, f.scaled(farmNodes)); err != nil {
			return err
		}
		c := scheduler{who: ours, pods: f.scaled(preemptors), size: f.scaled(preemptors), gpus: nodeGPUs, class: important}
		if err := f.prioritize(ctx, c); err != nil {
			return err
		}
		p, err := f.start(ours)
		if err != nil {
			return err
		}
		defer p.Stop()
		if err := p.Await(); err != nil {
			return err
		}

		return f.displace(ctx, b, p, c)
	}, "--unsafe-no-fsync")
}

// prioritize makes the PriorityClass of a scheduler, and waits until the API
// server admits its pods.
func (f *controlPlane) prioritize(ctx context.Context, c scheduler) error {
	if err := f.Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: c.class}, Value: 1000}); err != nil {
		return err
	}

	return harness.Until(ctx, harness.LongPoll, func(ctx context.Context) (bool, error) {
		return f.Create(ctx, c.newPod(0), client.DryRunAll) == nil, nil
	})
}

// displace creates the gang and measures what the scheduler does about it.
func (f *controlPlane) displace(ctx context.Context, b *harness.Board, p *cluster.Scheduler, c scheduler) error {
	ctx, cancel := context.WithTimeout(ctx, preemptFor)
	defer cancel()
	pods, err := f.kc.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer pods.Stop()
	groups, err := f.groups(ctx)
	if err != nil {
		return err
	}
	defer groups.Stop()
	seen := &preemption{farm: f, victims: sets.New[types.UID](), bound: sets.New[types.UID]()}
	done := make(chan error, 1)
	go func() { done <- seen.follow(ctx, pods.ResultChan(), groups.ResultChan(), c.pods) }()
	if err := f.crowd(ctx, c); err != nil {
		return err
	}
	began := time.Now()
	if err := <-done; err != nil {
		return err
	}
	spent, err := harness.CPU(p.PID())
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  %d of %d members bound, %d victims, with %.1f s of the scheduler's CPU\n", len(seen.bound), c.pods, len(seen.victims), spent/1000)
	// If it has not happened, it took at least as long as was waited for it.
	after := func(t time.Time) float64 {
		if t.IsZero() {
			return preemptFor.Seconds()
		}

		return max(0, t.Sub(began).Seconds())
	}
	b.Show(
		harness.Result{Name: "gangs-preempt/decision", Value: after(seen.decided)},
		harness.Result{Name: "gangs-preempt/evicted", Value: after(seen.evicted)},
		harness.Result{Name: "gangs-preempt/placed", Value: after(seen.placed)},
		harness.Result{Name: "gangs-preempt/victims", Value: float64(len(seen.victims))},
		harness.Result{Name: "gangs-preempt/bound", Value: float64(len(seen.bound))},
	)

	return nil
}

func (f *controlPlane) groups(ctx context.Context) (watch.Interface, error) {
	dc, err := dynamic.NewForConfig(f.up.Config)
	if err != nil {
		return nil, err
	}

	return dc.Resource(v2alpha2.GroupVersion.WithResource("podgroups")).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
}

// A preemption is what watches have seen of one.
type preemption struct {
	farm *controlPlane

	decided time.Time // first trace of a decision
	evicted time.Time // last victim that was deleted
	placed  time.Time // last member that was bound
	victims sets.Set[types.UID]
	bound   sets.Set[types.UID]
}

// follow reads events until the gang is bound and nothing more happens, or until
// its time is up.
func (o *preemption) follow(ctx context.Context, pods, groups <-chan watch.Event, members int) error {
	for {
		var quiet <-chan time.Time
		if len(o.bound) >= members {
			quiet = time.After(settled)
		}
		select {
		case <-ctx.Done():
			o.placed = time.Time{} // not all of them

			return nil
		case <-quiet:
			return nil
		case e, ok := <-pods:
			if err := o.podEvent(ctx, e, ok); err != nil {
				return err
			}
		case e, ok := <-groups:
			if err := o.groupEvent(ctx, e, ok); err != nil {
				return err
			}
		}
	}
}

// podEvent takes an event of a pod. It returns an error if the watch has ended early.
func (o *preemption) podEvent(ctx context.Context, e watch.Event, ok bool) error {
	if pod, is := e.Object.(*corev1.Pod); is {
		o.pod(ctx, e.Type, pod)
	} else if !ok && ctx.Err() == nil {
		return errors.New("the watch for pods has ended")
	}

	return nil
}

// groupEvent takes an event of a PodGroup. It returns an error if the watch has ended
// early.
func (o *preemption) groupEvent(ctx context.Context, e watch.Event, ok bool) error {
	if group, err := meta.Accessor(e.Object); err == nil && len(group.GetAnnotations()) > 0 {
		o.decide() // the record that the scheduler keeps
	} else if !ok && ctx.Err() == nil {
		return errors.New("the watch for PodGroups has ended")
	}

	return nil
}

func (o *preemption) decide() {
	if o.decided.IsZero() {
		o.decided = time.Now()
	}
}

func (o *preemption) pod(ctx context.Context, event watch.EventType, pod *corev1.Pod) {
	if _, member := pod.Labels[waitingLabel]; member {
		if pod.Spec.NodeName != "" && !o.bound.Has(pod.UID) {
			o.bound.Insert(pod.UID)
			o.placed = time.Now()
		}

		return
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			o.decide()
		}
	}
	if (pod.DeletionTimestamp == nil && event != watch.Deleted) || o.victims.Has(pod.UID) {
		return
	}
	o.decide()
	o.victims.Insert(pod.UID)
	o.evicted = time.Now()
	// The kubelet does this once the containers have ended.
	go func() {
		_ = o.farm.kc.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	}()
}
