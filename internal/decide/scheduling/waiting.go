package scheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/engine/gang"
)

// Waiting returns the condition PodScheduled for each of f.Pods, nil for those
// to which nothing is written: they are bound or have ended, have scheduling
// gates, or have not been tried yet.
//
// Only a pod that was tried, and for which there was no room, gets the reason
// Unschedulable, because autoscalers add nodes for those. Pods that wait for
// other pods of their gang get another one.
func Waiting(f *Facts) []*corev1.PodCondition {
	conditions := make([]*corev1.PodCondition, len(f.Pods))
	var why *Refusal // for all of them
	var lacks []*gang.Lack
	if f.Gang == nil {
		why = f.Refusal
	} else if why = f.Gang.Gate(); why == nil {
		lacks = gang.Lacks(f.Gang.Tree, f.Gang.Members, f.Gang.Rules)
	}
	for i, pod := range f.Pods {
		if !waits(pod) {
			continue
		}
		reason := why
		if reason == nil {
			reason = f.waitsFor(pod, lacks)
		}
		if reason != nil {
			conditions[i] = &corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason.Reason, Message: reason.Message,
			}
		}
	}

	return conditions
}

// waits reports whether a pod could be tried if its gang could.
func waits(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// waitsFor returns what a pod waits for whose gang can be tried, nil if it has
// not been tried yet.
func (f *Facts) waitsFor(pod *corev1.Pod, lacks []*gang.Lack) *Refusal {
	g := f.Gang
	leaf, refusal := g.leafOf(pod)
	if refusal != nil {
		return refusal
	}
	for i := leaf; i >= 0; i = g.Tree.Node(i).Parent {
		if lacks[i] != nil {
			return f.incomplete(lacks[i])
		}
	}
	o := f.outcome()
	switch {
	case o == nil:
		return nil
	case o.Error != nil:
		return o.Error
	case o.NoRoom[pod.UID]:
		return &Refusal{Reason: corev1.PodReasonUnschedulable, Message: o.Message}
	}

	return nil
}

// incomplete is for the pods of an optional subgroup that does not have enough
// of them.
func (f *Facts) incomplete(lack *gang.Lack) *Refusal {
	g := f.Gang
	message := lack.Message(g.Tree) + "; the gang does not wait for it"
	if gang.Satisfied(g.Tree, g.bound(), g.Rules)[g.Tree.Root()].Satisfied {
		message = lack.Message(g.Tree) + "; the gang itself is scheduled"
	}

	return &Refusal{Reason: ReasonSubGroupIncomplete, Message: message}
}
