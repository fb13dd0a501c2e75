package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/binding"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
	"github.com/arbor-control/arbor/internal/scheduler/preempt"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// next replaces the function with which kube-scheduler takes pods from its queue:
// those of gangs are dealt with here, the others take the usual way. It runs in the
// one goroutine that places pods, so a gang is alone while it is tried.
func (s *Scheduler) next(ctx context.Context) func(klog.Logger) (*framework.QueuedPodInfo, error) {
	// Only the replica that leads takes pods.
	lead := sync.OnceFunc(func() {
		<-s.groupsRead
		s.preemptor.RecoverReservations(ctx)
		s.lead(ctx)
	})
	popFirst := sync.OnceFunc(func() { gangmetrics.Reached(gangmetrics.PhaseFirstPop) })

	gangTime := time.Duration(0) // since the last plain pod

	return func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		lead()
		for {
			popped, err := s.kube.SchedulingQueue.Pop(logger)
			if err != nil || popped == nil {
				return popped, err
			}
			popFirst()
			key, ok := decide.GroupOf(popped.Pod)
			if !ok {
				gangTime = 0

				return popped, nil
			}
			began := time.Now()
			s.cycle(ctx, key, popped)
			if gangTime += time.Since(began); gangTime < gangShare {
				continue
			}
			gangTime = 0
			if plain := s.popPlain(logger); plain != nil {
				return plain, nil
			}
		}
	}
}

// gangShare is how long gangs are tried before a plain pod is placed, if one waits: many
// older gangs that do not fit must not keep plain pods waiting.
const gangShare = 200 * time.Millisecond

// popPlain takes the plain pod of the highest priority from the queue, nil if there is
// none.
func (s *Scheduler) popPlain(logger klog.Logger) *framework.QueuedPodInfo {
	var first *corev1.Pod
	for _, pod := range s.kube.SchedulingQueue.PodsInActiveQ() {
		if _, ok := decide.GroupOf(pod); ok {
			continue
		}
		if first == nil || corev1helpers.PodPriority(pod) > corev1helpers.PodPriority(first) {
			first = pod
		}
	}
	if first == nil {
		return nil
	}

	return s.kube.SchedulingQueue.PopSpecificPod(logger, first)
}

// cycleLimit is how long one gang may keep all other pods waiting. Trees that people
// write take milliseconds.
const cycleLimit = 10 * time.Second

// A turn is one gang while it is tried.
type turn struct {
	key      types.NamespacedName
	gang     *decide.Gang
	priority int32
	waiting  []*framework.QueuedPodInfo // by member; nil for those that do not wait
	world    *placement.World
	fw       framework.Framework
	began    time.Time
	// handedOver reports that the pods belong to a binding round.
	handedOver bool
}

// outcome returns what a decision means for the members that were tried.
func (t *turn) outcome(decision *gang.Decision) *decide.Outcome {
	return decide.NewOutcome(t.gang, decision, func(member int) bool { return t.waiting[member] != nil })
}

// cycle tries a gang, one of whose pods was popped.
func (s *Scheduler) cycle(ctx context.Context, key types.NamespacedName, popped *framework.QueuedPodInfo) {
	began := time.Now()
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", key))
	t := &turn{key: key, began: began, fw: s.kube.Profiles[popped.Pod.Spec.SchedulerName]}
	outcome := s.contain(ctx, t, popped, func() string { return s.try(ctx, t, popped) })
	gangmetrics.Observe(outcome, time.Since(began))
	s.reporter.Tried()
}

// contain has a panic affect this gang only: its places are given back, and it backs
// off for long.
func (s *Scheduler) contain(ctx context.Context, t *turn, popped *framework.QueuedPodInfo, try func() string) (outcome string) {
	defer func() {
		if !worker.Caught(worker.Cycle, t.key, recover()) {
			return
		}
		outcome = gangmetrics.ResultError
		if t.handedOver {
			return // its pods are being bound
		}
		if t.world != nil {
			t.world.Rollback(0)
		}
		s.backOffs.Exceeded(t.key)
		if t.waiting == nil {
			s.putBack(ctx, popped, nil)
		} else {
			s.putAllBack(ctx, t, nil)
		}
	}()

	return try()
}

func (s *Scheduler) try(ctx context.Context, t *turn, popped *framework.QueuedPodInfo) string {
	if s.rounds.Binding(t.key) {
		s.putBack(ctx, popped, sets.New(profiles.Gang))
		s.rounds.WakeAfter(t.key)

		return gangmetrics.ResultEarly
	}
	g, why := s.groups.Read(t.key)
	if why == nil {
		why = g.Gate()
	}
	if why != nil {
		s.putBack(ctx, popped, sets.New(profiles.Gang))
		if s.gates.Regate(t.key) {
			s.wake(t.key)
		}
		s.reporter.Touch(t.key)

		return gangmetrics.ResultRefused
	}
	t.gang, t.priority = g, s.groups.Priority(g.Group, g.Pods)
	s.take(ctx, t, popped)
	if t.gang.Gate() != nil {
		// Some are known and not in the queue yet. The last of them brings the gang
		// back here; if another plugin holds it, or its event is late, the gang is tried
		// again a little later.
		s.putAllBack(ctx, t, sets.New(profiles.Gang))
		s.early.Add(t.key)

		return gangmetrics.ResultEarly
	}
	s.early.Forget(t.key)

	return s.place(ctx, t)
}

// take gets every member that waits out of the queue. One that is not there is gated,
// or being bound, and is no candidate.
func (s *Scheduler) take(ctx context.Context, t *turn, popped *framework.QueuedPodInfo) {
	t.waiting = make([]*framework.QueuedPodInfo, len(t.gang.Members))
	found := false
	for i, m := range t.gang.Members {
		if m.State != gang.Waiting {
			continue
		}
		pod := t.gang.Pods[i]
		if pod.UID == popped.Pod.UID {
			t.waiting[i], found = popped, true
		} else {
			t.waiting[i] = s.popMember(ctx, pod)
		}
		if t.waiting[i] == nil {
			t.gang.Members[i].State = gang.Held
		}
	}
	if !found { // deleted, placed by another scheduler, or to be evicted, since it was popped
		s.putBack(ctx, popped, nil)
	}
}

// popMember takes a pod from the queue. The queue knows pods by name, so it may still
// have an older pod of that name.
func (s *Scheduler) popMember(ctx context.Context, pod *corev1.Pod) *framework.QueuedPodInfo {
	q := s.kube.SchedulingQueue.PopSpecificPod(klog.FromContext(ctx), pod)
	if q != nil && q.Pod.UID != pod.UID {
		s.putBack(ctx, q, nil)

		return nil
	}

	return q
}

func (s *Scheduler) place(ctx context.Context, t *turn) string {
	pods := make([]*corev1.Pod, len(t.waiting))
	for i, q := range t.waiting {
		if q != nil {
			pods[i] = q.Pod
		}
	}
	if err := s.kube.Cache.UpdateSnapshot(klog.FromContext(ctx), s.snapshot); err != nil {
		return s.couldNotTry(ctx, t, err)
	}
	t.gang.Compare(placement.Selective(s.snapshot, t.key.Namespace))
	w := placement.NewWorld(ctx, s.fitters[t.fw.ProfileName()], s.kube.Cache, t.gang.Group, pods, t.priority)
	t.world = w
	w.Reserved = s.reservations.Node
	w.Shape = func(member int) string { return t.gang.Members[member].Shape }
	if len(s.kube.Extenders) > 0 {
		w.Choose = s.ask(t)
	}
	done := s.reservations.Try(t.key)
	defer done()
	trying, cancel := context.WithTimeout(ctx, cycleLimit)
	defer cancel()
	decision, err := gang.Place(trying, t.gang.Tree, t.gang.Members, w, s.rules)
	if preempt.Exceeded(trying, err) {
		return s.tookTooLong(ctx, t)
	}
	if err != nil {
		return s.couldNotTry(ctx, t, err)
	}
	if !decision.Fits {
		return s.doesNotFit(ctx, t, w, &decision)
	}
	if refused := w.PermitAll(ctx, decision.Required); refused != nil {
		return s.notPermitted(ctx, t, w, refused)
	}
	for _, h := range w.Held {
		s.activate(ctx, h)
	}
	s.staleness.Expect(t.gang, decision)
	s.commit(ctx, t, w, decision.Required)
	s.reporter.Decided(t.key, t.outcome(&decision))

	return gangmetrics.ResultScheduled
}

// tookTooLong puts back a gang that exceeded the limit of a cycle. It backs off for
// minutes, so that it does not take half of the scheduler's time.
func (s *Scheduler) tookTooLong(ctx context.Context, t *turn) string {
	s.backOffs.Exceeded(t.key)

	return s.putBackFailed(ctx, t, fmt.Errorf("placing the group takes longer than %s: make it smaller, or simplify its affinities", cycleLimit))
}

// couldNotTry puts back a gang whose cycle failed. If that took long, as it does with an
// extender that does not answer, the gang backs off for so long that other pods have most
// of the scheduler's time.
func (s *Scheduler) couldNotTry(ctx context.Context, t *turn, err error) string {
	s.backOffs.FailedAfter(t.key, time.Since(t.began))

	return s.putBackFailed(ctx, t, err)
}

func (s *Scheduler) putBackFailed(ctx context.Context, t *turn, err error) string {
	klog.FromContext(ctx).Error(err, "A gang could not be tried; it is tried again")
	s.putAllBack(ctx, t, nil)
	s.reporter.Decided(t.key, &decide.Outcome{About: decide.Spec(t.gang.Group), Error: &decide.Refusal{Reason: v2alpha2.ReasonSchedulerError, Message: err.Error()}})

	return gangmetrics.ResultError
}

// doesNotFit puts back a gang for which there is no room. If victims were found for it,
// their plan is verified now, and the room is reserved.
func (s *Scheduler) doesNotFit(ctx context.Context, t *turn, w *placement.World, decision *gang.Decision) string {
	s.backOffs.Rejected(t.key, time.Since(t.began), s.preemptor.Freed(t.key))
	s.preemptor.Rejected(ctx, t.key, t.gang)
	gangmetrics.PodsHeld.Set(float64(s.held(t)))
	s.putAllBack(ctx, t, w.Rejectors)
	s.reporter.Decided(t.key, t.outcome(decision))

	return gangmetrics.ResultUnschedulable
}

// held counts the members that kept a place although their gang got none. It is 0, or
// there is a bug.
func (s *Scheduler) held(t *turn) int {
	n := 0
	for _, q := range t.waiting {
		if q == nil {
			continue
		}
		if is, err := s.kube.Cache.IsAssumedPod(q.Pod); err == nil && is {
			n++
		}
	}

	return n
}

// ask is kube-scheduler's own way to choose a node, for configurations with extenders,
// which only it can ask.
func (s *Scheduler) ask(t *turn) func(context.Context, fwk.CycleState, int) (string, error) {
	return func(ctx context.Context, state fwk.CycleState, member int) (string, error) {
		q := *t.waiting[member]
		q.PodInfo = &framework.PodInfo{}
		*q.PodInfo = *t.waiting[member].PodInfo
		q.Pod = podinfo.WithPriority(q.Pod, t.priority)
		result, err := s.kube.SchedulePod(ctx, t.fw, state, &q)
		if request := (*url.Error)(nil); errors.As(err, &request) {
			err = fmt.Errorf("an extender does not answer: %w", err)
		}

		return result.SuggestedHost, err
	}
}

// commit binds the pods that have a place and puts the others back.
func (s *Scheduler) commit(ctx context.Context, t *turn, w *placement.World, required int) {
	placed := sets.New[int]()
	for _, h := range w.Held {
		placed.Insert(h.Member)
		s.groups.Commit(h.Pod.UID, h.Node)
	}
	rejectors := w.Rejectors
	if len(rejectors) == 0 {
		rejectors = sets.New(profiles.Gang) // too few of its subgroup exist: no node would help
	}
	for i, q := range t.waiting {
		if q != nil && !placed.Has(i) {
			s.putBack(ctx, q, rejectors)
		}
	}
	gangmetrics.PodsPlaced.Add(float64(len(w.Held)))
	t.handedOver = true
	s.binder.BindAll(ctx, &binding.Gang{Key: t.key, Gang: t.gang, Waiting: t.waiting, Framework: t.fw, Began: t.began}, w.Held, required)
}
