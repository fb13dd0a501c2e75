package report

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
)

// writePodConditions writes to the pods of a group why they wait.
func (r *Reporter) writePodConditions(ctx context.Context, key types.NamespacedName) error {
	f := r.Facts(key)
	var errs []error
	for i, condition := range r.waiting(f) {
		if condition != nil {
			errs = append(errs, r.writePodCondition(ctx, f.Pods[i], condition))
		}
	}

	return errors.Join(errs...)
}

// waiting returns the condition of each pod, nil for those that name another
// scheduler.
func (r *Reporter) waiting(f *decide.Facts) []*corev1.PodCondition {
	conditions := decide.Waiting(f)
	for i, pod := range f.Pods {
		if !r.answers(pod) {
			conditions[i] = nil
		}
	}

	return conditions
}

// outdated reports whether a pod has to get another condition.
func (r *Reporter) outdated(f *decide.Facts) bool {
	for i, want := range r.waiting(f) {
		if want == nil {
			continue
		}
		if _, has := podutil.GetPodCondition(&f.Pods[i].Status, corev1.PodScheduled); has == nil ||
			has.Status != want.Status || has.Reason != want.Reason || has.Message != want.Message {
			return true
		}
	}

	return false
}

func (r *Reporter) writePodCondition(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) error {
	status := pod.Status.DeepCopy()
	condition.ObservedGeneration = podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.PodScheduled)
	if !podutil.UpdatePodCondition(status, condition) {
		return nil // it has it already
	}
	if err := podgroups.PatchPodStatus(ctx, r.groups.Client, pod, &pod.Status, status); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}

		return fmt.Errorf("cannot write the condition of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.recorder.Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", condition.Message)

	return nil
}

// foreign reports whether a group has pods and all of them name another
// scheduler.
func (r *Reporter) foreign(pods []*corev1.Pod) bool {
	return len(pods) > 0 && !slices.ContainsFunc(pods, r.answers)
}
