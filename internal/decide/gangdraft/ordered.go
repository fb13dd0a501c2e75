package gangdraft

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/identity"
)

// ReasonOrderedReady is the reason of a group that waits for pods that a
// StatefulSet never creates.
const ReasonOrderedReady = "OrderedReady"

// isOrdered reports whether a workload creates a pod only when the one before
// is ready, which is the default of StatefulSets.
func isOrdered(ref identity.Ref, spec map[string]any) bool {
	return ref.Kind == "StatefulSet" && spec["podManagementPolicy"] != string(appsv1.ParallelPodManagement)
}

// A Deadlock is a StatefulSet that waits for its pods to become ready, while
// the group waits for more pods of the StatefulSet.
type Deadlock struct {
	Set     identity.Ref
	Message string
}

// Deadlocked returns the deadlock of a group, nil if there is none. The gang has
// all pods of the draft.
func (one *Draft) Deadlocked(g *scheduling.Gang) *Deadlock {
	late := one.late(g.Pods)
	if len(late) == 0 {
		return nil
	}
	member, minimum := g.Lacking(func(i int) bool { return late[g.Pods[i].UID] != nil })
	if member < 0 {
		return nil
	}
	c := late[g.Pods[member].UID]
	created := 0
	for _, pod := range c.pods {
		if late[pod.UID] == nil {
			created++
		}
	}

	return &Deadlock{
		Set:     c.Owner,
		Message: scheduling.OrderedReadyHint(appsv1.OrderedReadyPodManagement, c.Owner.Name, created, len(c.pods), minimum),
	}
}

// late returns the pods that are created only when others have started, with
// the StatefulSet that creates them.
func (one *Draft) late(pods []*corev1.Pod) map[types.UID]*crew {
	late := map[types.UID]*crew{}
	present := uids(pods)
	for i := range one.Crews {
		c := &one.Crews[i]
		if !c.ordered {
			continue
		}
		next := c.mayCreate(pods)
		for _, pod := range c.pods {
			if !present[pod.UID] {
				continue // a pod of that name exists
			}
			if !next {
				late[pod.UID] = c
			}
			next = false
		}
	}

	return late
}

// mayCreate reports whether all pods of a StatefulSet that exist have a node, so
// that the next one is created.
func (c *crew) mayCreate(pods []*corev1.Pod) bool {
	drafts := uids(c.pods)
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && !drafts[pod.UID] && c.has(pod) {
			return false
		}
	}

	return true
}

func uids(pods []*corev1.Pod) map[types.UID]bool {
	all := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		all[pod.UID] = true
	}

	return all
}

// Alone returns the deadlock of a group that has the pods of the manifests and
// no others.
func (one *Draft) Alone() *Deadlock {
	if one.Group == nil {
		return nil
	}
	g, refusal := scheduling.Read(one.Group, one.Members(nil), gang.Rules{})
	if refusal != nil {
		return nil
	}

	return one.Deadlocked(g)
}
