package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// watch has gangs woken by what happens to them: to the PodGroup, and to their
// own pods.
func (s *Scheduler) watch() error {
	if _, err := s.groups.all.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.changed(o, true) },
		UpdateFunc: func(before, o any) { s.changed(o, different(before, o)) },
		DeleteFunc: func(o any) { s.changed(o, true) },
	}); err != nil {
		return err
	}
	// A new pod needs no waking: it comes to the gate by itself, and takes the
	// others along.
	if _, err := s.groups.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.moved(nil, o, false) },
		UpdateFunc: func(before, o any) { s.moved(before, o, true) },
		DeleteFunc: func(o any) { s.moved(o, nil, false) },
	}); err != nil {
		return err
	}
	_, err := s.groups.succeeded.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.moved(nil, o, true) },
		DeleteFunc: func(o any) { s.moved(o, nil, false) },
	})

	return err
}

// different says whether the spec is, or the group has begun to go.
func different(before, now any) bool {
	a, ok := before.(*v2alpha2.PodGroup)
	b, also := now.(*v2alpha2.PodGroup)

	return !ok || !also || a.UID != b.UID || a.Generation != b.Generation
}

func (s *Scheduler) changed(o any, wake bool) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	pg, ok := o.(*v2alpha2.PodGroup)
	if !ok {
		return
	}
	key := types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name}
	if wake {
		s.pace.forget(key)
		s.wake(key)
	}
	s.reporter.touch(key)
}

// moved is told of every change of every pod, so it is quick about plain ones.
func (s *Scheduler) moved(before, now any, wake bool) {
	was, is := podOf(before), podOf(now)
	if was != nil && is != nil && !matters(was, is) {
		return
	}
	wake = !s.groups.knew(was, is) && wake
	keys := map[types.NamespacedName]bool{}
	for _, pod := range []*corev1.Pod{was, is} {
		if pod != nil {
			if key, ok := decide.GroupOf(pod); ok {
				keys[key] = true
			}
		}
	}
	for key := range keys {
		if wake {
			s.wake(key)
		}
		s.reporter.touch(key)
	}
}

// matters says whether a gang has to look at a change of one of its pods.
func matters(was, is *corev1.Pod) bool {
	return was.UID != is.UID || was.Spec.NodeName != is.Spec.NodeName || was.Status.Phase != is.Status.Phase ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		was.Labels[decide.SubGroupLabel] != is.Labels[decide.SubGroupLabel] ||
		was.Annotations[decide.GroupAnnotation] != is.Annotations[decide.GroupAnnotation] ||
		len(was.Spec.SchedulingGates) != len(is.Spec.SchedulingGates)
}

func podOf(o any) *corev1.Pod {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	pod, _ := o.(*corev1.Pod)

	return pod
}
