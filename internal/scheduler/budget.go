package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A budget is a PodDisruptionBudget, and how many pods may still go under it.
type budget struct {
	of       *policyv1.PodDisruptionBudget
	selector labels.Selector
	left     int32
}

// guardedLast puts units last whose going would break a PodDisruptionBudget. Somebody
// may have to go nevertheless: as with kube-scheduler, priority is the stronger word.
func guardedLast(units []unit, pdbs []*policyv1.PodDisruptionBudget) []unit {
	budgets := make([]*budget, 0, len(pdbs))
	for _, pdb := range pdbs {
		if selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err == nil {
			budgets = append(budgets, &budget{of: pdb, selector: selector, left: pdb.Status.DisruptionsAllowed})
		}
	}
	var free, guarded []unit
	for _, u := range units {
		allowed := true
		for _, pod := range u.pods {
			allowed = spend(budgets, pod) && allowed
		}
		if allowed {
			free = append(free, u)
		} else {
			guarded = append(guarded, u)
		}
	}

	return append(free, guarded...)
}

// spend has a pod go, and says whether every budget that it is under allows that.
func spend(budgets []*budget, pod *corev1.Pod) bool {
	allowed := true
	for _, b := range budgets {
		if b.of.Namespace != pod.Namespace || !b.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if _, counted := b.of.Status.DisruptedPods[pod.Name]; counted {
			continue // it is going already
		}
		b.left--
		allowed = allowed && b.left >= 0
	}

	return allowed
}
