package scheduler

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// This file is the table of wake-ups: which event has which gangs tried again. A gang
// that was tried is woken by kube-scheduler's queueing hints too, which know what may
// help the plugins that rejected it: nodes, volumes, claims, pods that disappear. What
// is here is about the gate and the back-off, which have no hints: registering events
// for them would ask about every pending pod at every event.
//
//	event                                       gangs             where
//	PodGroup created, spec changed, deleted     that gang         onSpec
//	preemptibility or priority of a group
//	  changed, PodGroup deleted                 those that fit    onEvictable
//	pod created                                 its gang          onPod, if the gate opens
//	pod changed: node, phase, deletion,
//	  subgroup, group, gates                    its gangs         onPod
//	pod deleted, or ended                       its gang          onPod
//	pod succeeded                               its gang          onPod
//	last victim gone                            its preemptor     preempt: Gone, advance
//	PriorityClass created, changed, deleted     those naming it   onPriorityClass
//	PersistentVolumeClaim bound                 those that could
//	                                              not be prepared onVolume
//	back-off over                               that gang         BackOffs.Asked
//	pod named another PodGroup before           the pod itself    onRegrouped
//	a member was not in the queue               that gang         EarlyWakes.Add
//	a pod to be evicted stays                   its gang          Index.Unmark, onStay
//	plan found                                  that gang         preempt: conclude
//	search failed, reservation released         that gang         preempt: advance, in time
//	reservation released                        any               preempt: vacate
//	binding round failed                        that gang         binding: fail, by the queue
//	binding round failed                        any               binding: freed
//	binding round ended                         that gang         binding: settled
//
// A lost wake-up is found by the backstop of package gate.

// watch registers the handlers of the table.
func (s *Scheduler) watch() error {
	handlers := []struct {
		informer cache.SharedIndexInformer
		handle   func(was, is any)
	}{
		{s.groups.PodGroups, s.onGroup},
		{s.groups.Pods, s.onPod},
		{s.groups.Succeeded, s.onPod},
		{s.groups.ClassInformer, s.onPriorityClass},
		{s.groups.Volumes, s.onVolume},
	}
	for _, h := range handlers {
		handle := s.contained(h.handle)
		if _, err := h.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { handle(nil, o) },
			UpdateFunc: handle,
			DeleteFunc: func(o any) { handle(o, nil) },
		}); err != nil {
			return err
		}
	}

	return nil
}

// contained returns a handler whose panic affects the object of one event only.
func (s *Scheduler) contained(handle func(was, is any)) func(was, is any) {
	return func(was, is any) {
		defer worker.Recovered(worker.Events, nameOf(was, is))
		handle(was, is)
	}
}

// nameOf returns the name of the object of an event.
func nameOf(was, is any) types.NamespacedName {
	for _, o := range []any{is, was} {
		if name, err := cache.DeletionHandlingObjectToName(o); o != nil && err == nil {
			return types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
		}
	}

	return types.NamespacedName{}
}

// objectOf returns the object of an event, also if the informer has missed its end.
func objectOf[T any](o any) *T {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	object, _ := o.(*T)

	return object
}

// onGroup handles PodGroups.
func (s *Scheduler) onGroup(before, now any) {
	was, is := objectOf[v2alpha2.PodGroup](before), objectOf[v2alpha2.PodGroup](now)
	pg := cmp.Or(is, was)
	if pg == nil {
		return
	}
	key := types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name}
	if !sameSpec(was, is) {
		s.onSpec(key, was, is)
	}
	if !sameProtection(was, is) {
		s.onEvictable(key)
	}
	s.preemptor.Touch(key)
	s.staleness.Touch(key)
	s.reporter.Touch(key)
	if is == nil {
		s.gates.Forget(key)
		s.backOffs.Forget(key)
		s.unprepared.Forget(key)
		s.early.Forget(key)
		s.staleness.Forget(key)
	} else if _, ok := is.Annotations[v2alpha2.ReservationAnnotation]; ok && s.reservations.Of(key) == nil {
		s.preemptor.CleanUpLater(key)
	}
}

// sameSpec reports whether a PodGroup is the same one with the same spec as before.
func sameSpec(was, is *v2alpha2.PodGroup) bool {
	return was != nil && is != nil && was.UID == is.UID && was.Generation == is.Generation
}

// sameMembers reports whether a PodGroup is the same one, and needs the same pods in the
// same places as before. Other fields, such as grace periods and priorities, do not change
// which pods are bound.
func sameMembers(was, is *v2alpha2.PodGroup) bool {
	if was == nil || is == nil || was.UID != is.UID || is.DeletionTimestamp != nil {
		return false
	}
	a, b := &was.Spec, &is.Spec

	return equality.Semantic.DeepEqual(a.MinMember, b.MinMember) && equality.Semantic.DeepEqual(a.MinSubGroup, b.MinSubGroup) &&
		equality.Semantic.DeepEqual(a.SubGroups, b.SubGroups) && a.TopologyConstraint == b.TopologyConstraint && a.Queue == b.Queue
}

// sameProtection reports whether a PodGroup is protected from preemption as before.
func sameProtection(was, is *v2alpha2.PodGroup) bool {
	return was == nil || is != nil && was.Spec.Preemptibility == is.Spec.Preemptibility && was.Spec.PriorityClassName == is.Spec.PriorityClassName
}

// onSpec handles a PodGroup that is new, another one, or has another spec.
func (s *Scheduler) onSpec(key types.NamespacedName, was, is *v2alpha2.PodGroup) {
	if was == nil || is == nil || was.UID != is.UID {
		s.backOffs.Forget(key)
	} else {
		s.backOffs.Forgive(key)
	}
	s.unprepared.Forget(key)
	if !sameMembers(was, is) {
		s.rounds.Changed(key)
	}
	s.gates.Regate(key)
	s.wake(key)
}

// onEvictable handles a gang that others may be able to preempt now: to them it is as if
// its pods were deleted. One pod of each shape is enough to ask.
func (s *Scheduler) onEvictable(key types.NamespacedName) {
	seen := map[string]bool{}
	for _, pod := range s.groups.Members(key) {
		shape := decide.Shape(pod, false)
		if pod.Spec.NodeName == "" || seen[shape] {
			continue
		}
		seen[shape] = true
		s.kube.SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.Background(), framework.EventAssignedPodDelete, pod, nil, nil)
	}
}

// onPod handles pods. It is called for every change of every pod, so it is quick about
// plain ones.
func (s *Scheduler) onPod(before, now any) {
	was, is := objectOf[corev1.Pod](before), objectOf[corev1.Pod](now)
	switch {
	case was == nil || is == nil:
	case was.UID != is.UID: // the informer has missed a deletion
		s.onPod(was, nil)
		s.onPod(nil, is)

		return
	case !concerns(was, is):
		return
	}
	s.onChangedPod(was, is)
}

// onChangedPod handles a pod that is new or deleted, or that has changed in a way that matters.
func (s *Scheduler) onChangedPod(was, is *corev1.Pod) {
	if is == nil && was != nil {
		s.preemptor.Gone(was.UID)
	}
	known := s.isKnown(was, is)
	s.onRegrouped(was, is)
	last := types.NamespacedName{}
	for _, pod := range []*corev1.Pod{was, is} {
		if pod == nil {
			continue
		}
		key, ok := decide.GroupOf(pod)
		if !ok || key == last {
			continue
		}
		last = key
		if isDeleted(is) {
			s.rounds.Deleted(key, pod.UID)
			s.backOffs.Deleted(key, pod.UID)
			s.unprepared.Deleted(key, pod.UID)
		}
		s.onMember(key, known, was == nil)
	}
}

// isDeleted reports whether a pod is gone or terminating.
func isDeleted(pod *corev1.Pod) bool { return pod == nil || pod.DeletionTimestamp != nil }

// regroupDelay is how long kube-scheduler's own handler of an event may take.
const regroupDelay = time.Second

// onRegrouped handles a pod that names another PodGroup than before, or none. It may be
// held by the gate of the old one, and nothing else would ask again. kube-scheduler's own
// handler has to update its queue first.
func (s *Scheduler) onRegrouped(was, is *corev1.Pod) {
	if was == nil || is == nil || is.Spec.NodeName != "" || was.Annotations[decide.GroupAnnotation] == is.Annotations[decide.GroupAnnotation] || !s.answers(is) {
		return
	}
	time.AfterFunc(regroupDelay, func() {
		defer worker.Recovered(worker.Events, types.NamespacedName{Namespace: is.Namespace, Name: is.Name})
		s.kube.SchedulingQueue.Activate(klog.Background(), map[string]*corev1.Pod{is.Namespace + "/" + is.Name: is})
	})
}

// isKnown takes a change of a pod, and reports whether it is no news to the gate: it is a
// binding that this scheduler has made, or the pod counts as before.
func (s *Scheduler) isKnown(was, is *corev1.Pod) bool {
	return s.groups.IsOwnChange(was, is) || countsAlike(was, is)
}

// countsAlike reports whether a pod counts for the minimums of its gang as before: only its
// phase has changed, to Running for example.
func countsAlike(was, is *corev1.Pod) bool {
	ended := func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}
	if was == nil || is == nil || was.Status.Phase == is.Status.Phase || ended(was) || ended(is) {
		return false
	}
	only := *was
	only.Status.Phase = is.Status.Phase

	return !concerns(&only, is)
}

// onMember handles the change of a member of a gang. A binding that this scheduler has
// made, and a pod that starts, are no news to the gate. A pod that was created comes to the gate by itself; the others are
// woken if it opens.
func (s *Scheduler) onMember(key types.NamespacedName, own, created bool) {
	s.preemptor.Touch(key)
	if !own {
		was := s.gates.Get(key)
		if open := s.gates.RegateAfter(key, created); open && (!created || !was.Known || was.Refusal != nil) {
			s.wake(key)
		}
	}
	s.staleness.Touch(key)
	s.reporter.Touch(key)
}

// concerns reports whether a change of a pod concerns its gang.
func concerns(was, is *corev1.Pod) bool {
	return was.UID != is.UID || was.Spec.NodeName != is.Spec.NodeName || was.Status.Phase != is.Status.Phase ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		was.Labels[decide.SubGroupLabel] != is.Labels[decide.SubGroupLabel] ||
		was.Annotations[decide.GroupAnnotation] != is.Annotations[decide.GroupAnnotation] ||
		len(was.Spec.SchedulingGates) != len(is.Spec.SchedulingGates)
}

// onPriorityClass handles PriorityClasses: gangs that name one may have another place
// in the queue, and may preempt others.
func (s *Scheduler) onPriorityClass(before, now any) {
	was, is := objectOf[schedulingv1.PriorityClass](before), objectOf[schedulingv1.PriorityClass](now)
	s.groups.SeeClass(was, is, time.Now())
	if was != nil && is != nil && was.Value == is.Value && equality.Semantic.DeepEqual(was.PreemptionPolicy, is.PreemptionPolicy) {
		return
	}
	name := ""
	for _, class := range []*schedulingv1.PriorityClass{was, is} {
		if class != nil {
			name = class.Name
		}
	}
	for _, o := range s.groups.PodGroups.GetStore().List() {
		if pg, ok := o.(*v2alpha2.PodGroup); ok && pg.Spec.PriorityClassName == name {
			key := types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name}
			s.retry(key)
			s.onEvictable(key)
			s.reporter.Touch(key)
		}
	}
}

// onStay handles a gang with a pod that was to be evicted and stays: it counts again.
func (s *Scheduler) onStay(key types.NamespacedName) {
	if s.gates.Regate(key) {
		s.wake(key)
	}
	s.staleness.Touch(key)
}

// wake brings a gang that waits into the queue: all of its members, because each of
// them may be held by another plugin.
func (s *Scheduler) wake(key types.NamespacedName) {
	defer worker.Recovered(worker.Events, key) // timers call it, too
	pods := map[string]*corev1.Pod{}
	for _, pod := range s.groups.Members(key) {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && s.answers(pod) {
			pods[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	if len(pods) > 0 {
		s.kube.SchedulingQueue.Activate(klog.Background(), pods)
	}
}

// retry wakes a gang even if it backs off.
func (s *Scheduler) retry(key types.NamespacedName) {
	s.backOffs.Forget(key)
	s.wake(key)
}

// answers reports whether a pod asks for this scheduler.
func (s *Scheduler) answers(pod *corev1.Pod) bool {
	return s.kube.Profiles.HandlesSchedulerName(pod.Spec.SchedulerName)
}

// onVolume handles PersistentVolumeClaims: one that is bound can be used.
func (s *Scheduler) onVolume(before, now any) {
	was, is := objectOf[corev1.PersistentVolumeClaim](before), objectOf[corev1.PersistentVolumeClaim](now)
	if was == nil || is == nil || was.Status.Phase == corev1.ClaimBound || is.Status.Phase != corev1.ClaimBound {
		return
	}
	for _, key := range s.unprepared.WaitingFor(is.Namespace, is.Name) {
		s.unprepared.Forget(key)
		s.retry(key)
		s.preemptor.Touch(key)
	}
}
