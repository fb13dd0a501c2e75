package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// next replaces the function with which kube-scheduler takes pods from its
// queue: those of gangs are dealt with here, the others go on as ever. It runs
// in the one goroutine that places pods, so a gang is alone while it is tried.
func (s *Scheduler) next(ctx context.Context) func(klog.Logger) (*framework.QueuedPodInfo, error) {
	// Pods are taken by who leads, and by nobody else.
	lead := sync.OnceFunc(func() { s.lead(ctx) })

	return func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		lead()
		for {
			popped, err := s.kube.SchedulingQueue.Pop(logger)
			if err != nil || popped == nil {
				return popped, err
			}
			key, ok := decide.GroupOf(popped.Pod)
			if !ok {
				return popped, nil
			}
			s.cycle(ctx, key, popped)
		}
	}
}

// patience is how long one gang may keep all other pods waiting. Trees that
// people write take milliseconds.
const patience = 10 * time.Second

// A turn is one gang while it is tried.
type turn struct {
	key     types.NamespacedName
	gang    *decide.Gang
	waiting []*framework.QueuedPodInfo // by member; nil for those that do not wait
	fw      framework.Framework
	began   time.Time
}

// cycle tries a gang, one of whose pods came up.
func (s *Scheduler) cycle(ctx context.Context, key types.NamespacedName, popped *framework.QueuedPodInfo) {
	began := time.Now()
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "podGroup", key))
	outcome := s.try(ctx, key, popped, began)
	observe(outcome, time.Since(began))
	s.reporter.busy.Store(time.Now().UnixNano())
}

func (s *Scheduler) try(ctx context.Context, key types.NamespacedName, popped *framework.QueuedPodInfo, began time.Time) string {
	g, why := s.groups.read(key)
	if why == nil {
		if lack := gang.Missing(g.Tree, g.Members, s.rules); lack != nil {
			why = &decide.Refusal{Reason: v2alpha2.ReasonTooFewPods, Message: lack.Sentence(g.Tree)}
		}
	}
	if why != nil {
		s.ready.Delete(key)
		s.putBack(ctx, popped, sets.New(pluginName))
		s.reporter.decided(key, verdict{refusal: why})

		return resultRefused
	}
	t := &turn{key: key, gang: g, began: began, fw: s.kube.Profiles[popped.Pod.Spec.SchedulerName]}
	s.take(ctx, t, popped)
	if gang.Missing(t.gang.Tree, t.gang.Members, s.rules) != nil {
		// Some are known and not in the queue yet. Whoever comes last brings
		// the gang back here, so there is nothing to say and nothing to wait for.
		s.putAllBack(ctx, t, sets.New(pluginName))

		return resultEarly
	}

	return s.place(ctx, t)
}

// take gets every member that waits out of the queue. Whoever is not there is
// gated, or being bound, and is no candidate.
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
			t.waiting[i] = s.kube.SchedulingQueue.PopSpecificPod(klog.FromContext(ctx), pod)
		}
		if t.waiting[i] == nil {
			t.gang.Members[i].State = gang.Held
		}
	}
	if !found { // deleted, or placed by somebody else, since it came up
		s.kube.SchedulingQueue.Done(popped.Pod.UID)
	}
}

func (s *Scheduler) place(ctx context.Context, t *turn) string {
	pods := make([]*corev1.Pod, len(t.waiting))
	for i, q := range t.waiting {
		if q != nil {
			pods[i] = q.Pod
		}
	}
	t.gang.Compare()
	w := newWorld(ctx, s.fitters[t.fw.ProfileName()], s.kube.Cache, t.gang.Group, pods)
	if len(s.kube.Extenders) > 0 {
		w.choose = s.ask(t)
	}
	trying, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	decision, err := gang.Place(trying, t.gang.Tree, t.gang.Members, w, s.rules)
	if err != nil {
		klog.FromContext(ctx).Error(err, "A gang could not be tried; it is tried again")
		s.pace.failed(t.key)
		s.putAllBack(ctx, t, nil)
		s.reporter.decided(t.key, verdict{refusal: &decide.Refusal{Reason: decide.ReasonSchedulerError, Message: err.Error()}})

		return resultError
	}
	if !decision.Fits {
		s.pace.failed(t.key)
		podsHeld.Set(float64(s.held(t)))
		s.putAllBack(ctx, t, w.rejectors)
		s.reporter.decided(t.key, verdict{decision: &decision, uid: t.gang.Group.UID, spec: t.gang.Group.Generation, sentence: decide.Sentence(t.gang, &decision)})
		s.preempt(t)

		return resultUnschedulable
	}
	s.pace.forget(t.key)
	s.commit(ctx, t, w)
	s.reporter.decided(t.key, verdict{decision: &decision, uid: t.gang.Group.UID, spec: t.gang.Group.Generation, sentence: decide.Sentence(t.gang, &decision)})

	return resultScheduled
}

// held counts the members that kept a place although their gang got none. It is
// 0, or there is a bug.
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

// ask is kube-scheduler's own way to choose a node, for configurations with
// extenders, which only it can ask.
func (s *Scheduler) ask(t *turn) func(context.Context, fwk.CycleState, int) (string, error) {
	return func(ctx context.Context, state fwk.CycleState, member int) (string, error) {
		result, err := s.kube.SchedulePod(ctx, t.fw, state, t.waiting[member])

		return result.SuggestedHost, err
	}
}

// commit binds those who have a place and puts the others back.
func (s *Scheduler) commit(ctx context.Context, t *turn, w *world) {
	placed := sets.New[int]()
	for _, h := range w.held {
		placed.Insert(h.member)
	}
	for i, q := range t.waiting {
		if q != nil && !placed.Has(i) {
			s.putBack(ctx, q, w.rejectors)
		}
	}
	podsPlaced.Add(float64(len(w.held)))
	s.bindAll(ctx, t, w.held)
}

// wake brings a gang that waits into the queue. One member is enough: it takes
// the others along.
func (s *Scheduler) wake(key types.NamespacedName) {
	for _, pod := range s.groups.members(key) {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && s.answers(pod) {
			s.kube.SchedulingQueue.Activate(klog.Background(), map[string]*corev1.Pod{fmt.Sprintf("%s/%s", pod.Namespace, pod.Name): pod})

			return
		}
	}
}

// answers says whether a pod asks for this scheduler.
func (s *Scheduler) answers(pod *corev1.Pod) bool {
	return s.kube.Profiles.HandlesSchedulerName(pod.Spec.SchedulerName)
}
