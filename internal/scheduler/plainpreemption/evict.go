package plainpreemption

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/eviction"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
)

// A plainEvictor preempts victims as kube-scheduler does, with two differences. Before the
// first one, it marks all as leaving, so that none counts as a member of its gang any more. And
// it never deletes another pod that has the name of a victim by now.
type plainEvictor struct {
	handle fwk.Handle
	groups *podgroups.Index
	// evict deletes a victim.
	evict func(ctx context.Context, pod *corev1.Pod, reason, message string) error

	mu sync.Mutex
	// rounds has the candidates whose victims are being preempted.
	rounds map[preemption.Candidate]*plainRound
}

// A plainRound is the preemption of the victims of one candidate.
type plainRound struct {
	// failed means that a victim could not be evicted. No further one is.
	failed bool
	// wakes are the preemptors that are activated when the round ends.
	wakes []plainWake
}

// A plainWake is a preemptor that is to be activated.
type plainWake struct {
	// of is the candidate of the preemptor.
	of   preemption.Candidate
	pods map[string]*corev1.Pod
}

func newPlainEvictor(handle fwk.Handle, g *podgroups.Index) *plainEvictor {
	return &plainEvictor{handle: handle, groups: g, evict: g.DeletePod, rounds: map[preemption.Candidate]*plainRound{}}
}

// preemptPod runs in one goroutine per victim. While a victim has not been
// preempted, the candidate is the value of its mark.
//
// A pod that is not bound yet is not deleted: its binding is canceled. The gang may give up all
// its places at the same time, because another member was canceled, so whether a pod is being
// bound must not be asked twice.
func (e *plainEvictor) preemptPod(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod, plugin string) error {
	if !e.begin(ctx, c, preemptor, victim) {
		return nil
	}
	if eviction.CancelBinding(e.handle, victim.UID, plugin) {
		e.record(ctx, c, preemptor, victim, ": its binding was canceled")
		e.stays(c, preemptor, victim)

		return nil
	}
	if !e.usesRoom(victim) {
		e.stays(c, preemptor, victim)

		return nil
	}
	message := fmt.Sprintf("%s: preempting to accommodate a higher priority %s", preemptor.SchedulerName(), preemptor.Type())
	if err := e.evict(ctx, victim, corev1.PodReasonPreemptionByScheduler, message); err != nil {
		e.fail(c)

		return err
	}
	e.record(ctx, c, preemptor, victim, "")
	e.groups.MarkLeaving(victim.UID)
	// The mark is removed with the pod. For one that is gone already there is no event to come.
	if e.groups.Current(victim) == nil {
		e.groups.Unmark(victim)
	}

	return nil
}

func (e *plainEvictor) record(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod, how string) {
	e.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(victim, preemptor.Obj(), corev1.EventTypeNormal, "Preempted", "Preempting",
		"Preempted by %s %v on node %v%s", preemptor.Type(), preemptor.UID(), c.Name(), how)
}

// usesRoom reports whether a victim has to be deleted. It may have ended in the meantime, and a
// member of a gang may only wait, because its gang has given up its places. A plain pod that
// is being bound has its node in the API server only later.
func (e *plainEvictor) usesRoom(victim *corev1.Pod) bool {
	if _, ok := decide.GroupOf(victim); !ok {
		return e.groups.Current(victim) != nil
	}

	return e.groups.UsingRoom(victim) != nil
}

// begin reports whether a victim is to be preempted for a candidate. For the first victim, it
// marks all victims of the candidate. If another preemption evicts the victim, the preemptor
// waits for that one, and is activated if it fails.
func (e *plainEvictor) begin(ctx context.Context, c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx.Err() != nil {
		return false // the preemption has ended: another victim could not be evicted
	}
	round := e.rounds[c]
	if round == nil {
		round = &plainRound{}
		e.rounds[c] = round
		for _, pod := range c.Victims().Pods {
			e.groups.MarkLeavingBy(pod.UID, c)
		}
		// kube-scheduler cancels the context when the preemption has ended.
		context.AfterFunc(ctx, func() { e.end(ctx, c) })
	}
	by := e.groups.LeavingBy(victim.UID)
	if other, ok := by.(preemption.Candidate); ok && other != c {
		if r := e.rounds[other]; r != nil {
			r.wakes = append(r.wakes, plainWake{c, preemptor.Pods()})
		}
	}

	return by == c && !round.failed
}

// end forgets a round. The queue keeps a preemptor out until its preemption has ended, so one whose
// own round goes on is activated after that. If a victim loses its place without being deleted, no
// event follows that would wake the preemptor.
func (e *plainEvictor) end(ctx context.Context, c preemption.Candidate) {
	e.mu.Lock()
	wakes := e.rounds[c].wakes
	delete(e.rounds, c)
	wakes = slices.DeleteFunc(wakes, func(w plainWake) bool {
		own := e.rounds[w.of]
		if own != nil {
			own.wakes = append(own.wakes, w)
		}

		return own != nil
	})
	e.mu.Unlock()
	for _, w := range wakes {
		e.handle.Activate(klog.FromContext(ctx), w.pods)
	}
}

// fail ends the preemption of the victims that have not been evicted yet: they stay.
func (e *plainEvictor) fail(c preemption.Candidate) {
	e.mu.Lock()
	if round := e.rounds[c]; round != nil {
		round.failed = true
	}
	e.mu.Unlock()
	for _, pod := range c.Victims().Pods {
		e.groups.UnmarkBy(pod, c)
	}
}

// stays removes the mark of a pod that loses its place without being deleted, or has ended. The
// preemptor is activated when its preemption ends.
func (e *plainEvictor) stays(c preemption.Candidate, preemptor preemption.ExecutorPreemptor, victim *corev1.Pod) {
	e.groups.Unmark(victim)
	e.mu.Lock()
	defer e.mu.Unlock()
	if round := e.rounds[c]; round != nil {
		round.wakes = append(round.wakes, plainWake{c, preemptor.Pods()})
	}
}
