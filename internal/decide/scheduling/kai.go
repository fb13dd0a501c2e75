package scheduling

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// The fields that KAI's tools read: status.schedulingConditions and status.resourcesStatus.
const (
	// defaultNodePool is KAI's name for the nodes of a cluster that is not
	// divided into node pools.
	defaultNodePool = "default"
	// maxExplanationBytes bounds the copies of the message in
	// status.schedulingConditions.
	maxExplanationBytes = 1024
	// maxResources is how many resources a sum lists.
	maxResources = 64
)

// showUnschedulable aligns status.schedulingConditions with the condition Scheduled: there is an
// entry exactly if the condition is Unschedulable. Entries of other node pools stay.
func showUnschedulable(status *v2alpha2.PodGroupStatus, now metav1.Time) {
	c := conditionOf(*status)
	ours := func(s v2alpha2.SchedulingCondition) bool {
		return s.Type == v2alpha2.UnschedulableOnNodePool && s.NodePool == defaultNodePool
	}
	switch {
	case c == nil:
		return
	case !slices.Contains(noRoom, c.Reason):
		status.SchedulingConditions = slices.DeleteFunc(status.SchedulingConditions, ours)
		if len(status.SchedulingConditions) == 0 {
			status.SchedulingConditions = nil
		}

		return
	}
	message := verdict.Shorten(c.Message, maxExplanationBytes)
	entry := v2alpha2.SchedulingCondition{
		Type: v2alpha2.UnschedulableOnNodePool, NodePool: defaultNodePool, Status: corev1.ConditionTrue,
		Reason: v2alpha2.ReasonUnschedulable, Message: message,
		Reasons:            []v2alpha2.UnschedulableExplanation{{Reason: c.Reason, Message: message}},
		LastTransitionTime: now,
	}
	at := slices.IndexFunc(status.SchedulingConditions, ours)
	if at < 0 {
		entry.TransitionID = nextTransition(status.SchedulingConditions)
		status.SchedulingConditions = append(status.SchedulingConditions, entry)

		return
	}
	entry.TransitionID, entry.LastTransitionTime = status.SchedulingConditions[at].TransitionID, status.SchedulingConditions[at].LastTransitionTime
	status.SchedulingConditions[at] = entry
}

// nextTransition returns the number after the highest.
func nextTransition(all []v2alpha2.SchedulingCondition) string {
	highest := 0
	for _, c := range all {
		if id, err := strconv.Atoi(c.TransitionID); err == nil {
			highest = max(highest, id)
		}
	}

	return strconv.Itoa(highest + 1)
}

// resources sums what the pods request that have not ended, and what those have
// that are bound.
func (f *Facts) resources() v2alpha2.PodGroupResourcesStatus {
	if f.Gang == nil {
		return v2alpha2.PodGroupResourcesStatus{}
	}
	requested, allocated := corev1.ResourceList{}, corev1.ResourceList{}
	for _, pod := range f.Gang.Pods {
		if pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		asked := resource.PodRequests(pod, resource.PodResourcesOptions{})
		add(requested, asked)
		if pod.Spec.NodeName != "" && !f.Gang.Unbound[pod.UID] {
			add(allocated, asked)
		}
	}
	sums := v2alpha2.PodGroupResourcesStatus{Requested: bounded(requested), Allocated: bounded(allocated)}
	if !Preemptible(f.Group, f.Priority) {
		sums.AllocatedNonPreemptible = sums.Allocated.DeepCopy()
	}

	return sums
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// bounded returns the first resources by name, nil if there are none.
func bounded(all corev1.ResourceList) corev1.ResourceList {
	if len(all) == 0 {
		return nil
	}
	if len(all) > maxResources {
		for _, name := range slices.Sorted(maps.Keys(all))[maxResources:] {
			delete(all, name)
		}
	}

	return all
}
