package gangdraft

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/identity"
)

// A Draft is a group of the manifests with its pods, which may not exist yet.
type Draft struct {
	Key types.NamespacedName
	// Group is nil if the manifests have only pods of it.
	Group *v2alpha2.PodGroup
	Crews []crew
}

// A crew is the pods of one object of a manifest: a workload or a single pod.
type crew struct {
	Owner identity.Ref
	pods  []*corev1.Pod
	// ordered is set for a StatefulSet that creates its pods one after another.
	ordered bool
}

// Members returns the pods that a group would have: those that exist, and those
// of the manifests that do not exist yet.
func (one *Draft) Members(existing []*corev1.Pod) []*corev1.Pod {
	names := map[string]bool{}
	for _, pod := range existing {
		if living(pod) {
			names[pod.Name] = true
		}
	}
	all := append([]*corev1.Pod{}, existing...)
	for _, c := range one.Crews {
		missing := len(c.pods)
		for _, pod := range existing {
			if c.has(pod) {
				missing--
			}
		}
		for _, pod := range c.pods {
			if missing > 0 && !names[pod.Name] {
				all = append(all, pod)
				missing--
			}
		}
	}

	return all
}

// has reports whether a pod that exists is one of the crew.
func (c *crew) has(pod *corev1.Pod) bool {
	if !living(pod) {
		return false
	}
	for _, p := range c.pods {
		if p.Name == pod.Name {
			return true
		}
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return false
	case owner.Kind == c.Owner.Kind:
		return owner.Name == c.Owner.Name
	case owner.Kind == "ReplicaSet" && c.Owner.Kind == "Deployment":
		hash, ok := strings.CutPrefix(owner.Name, c.Owner.Name+"-")

		return ok && !strings.Contains(hash, "-")
	default:
		return false
	}
}

// living reports whether a pod counts. One that does not is replaced by another
// of the same name.
func living(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil
}
