package preempt

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// A plan is who has to be evicted, and where the gang is placed then.
type plan struct {
	group      types.UID
	generation int64
	priority   int32
	pods       []*corev1.Pod // of the gang
	nodes      []string      // their places
	victims    []*corev1.Pod
	violations int // of PodDisruptionBudgets
	// deadline is when the reservation ends at the latest.
	deadline time.Time
	// recovered plans were carried out, in part, by another process.
	recovered bool
	// unrecorded plans were changed since their record was written.
	unrecorded bool
	// claimed plans have marked their victims as leaving.
	claimed bool
	// evicted has the victims that this process has evicted, in all attempts.
	evicted sets.Set[types.UID]
	// announced plans have the event that pods are evicted for them.
	announced bool
}

// evictions is how many victims are not terminating yet.
func (p *plan) evictions() int {
	n := 0
	for _, pod := range p.victims {
		if isRunning(pod) {
			n++
		}
	}

	return n
}

// isRunning reports whether a pod is not being deleted.
func isRunning(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil }

// uncovered names what the reservation of a plan does not cover.
func (p *plan) uncovered() string {
	for _, pod := range p.pods {
		if len(pod.Spec.ResourceClaims) > 0 || decide.Shape(pod, false) == "" {
			return " (but not devices and volumes that its pods claim)"
		}
	}

	return ""
}

// covers reports whether a plan was verified for the gang as it is now: for its spec, and
// for pods that all still exist.
func (p *plan) covers(g *decide.Gang) bool {
	if p.generation != g.Group.Generation {
		return false
	}
	exists := map[types.UID]bool{}
	for _, pod := range g.Pods {
		exists[pod.UID] = true
	}

	return !slices.ContainsFunc(p.pods, func(pod *corev1.Pod) bool { return !exists[pod.UID] })
}

// reassign gives the places of pods that do not wait any more to pods that are like
// them. It returns an error if the places are not enough for the gang.
func (p *plan) reassign(g *decide.Gang) error {
	members, spare := slices.Clone(g.Members), p.spares(g)
	had, nodes := p.pods, p.nodes
	p.pods, p.nodes = nil, nil
	for at, pod := range had {
		i := slices.IndexFunc(g.Pods, func(is *corev1.Pod) bool { return is.UID == pod.UID })
		if i < 0 {
			i = slices.IndexFunc(g.Pods, func(is *corev1.Pod) bool { return spare[is.UID] && alike(is, pod) })
		}
		if i < 0 || !waits(members[i]) {
			continue // it has a place, or no pod replaces it
		}
		delete(spare, g.Pods[i].UID)
		members[i].State = gang.Placed
		p.pods, p.nodes = append(p.pods, g.Pods[i]), append(p.nodes, nodes[at])
	}
	if len(p.pods) == 0 || !gang.Satisfied(g.Tree, members, g.Rules)[g.Tree.Root()].Satisfied {
		return errors.New("the reserved places are not enough for its minimum")
	}

	return nil
}

// spares returns the pods of a gang that wait and have no place in the plan.
func (p *plan) spares(g *decide.Gang) map[types.UID]bool {
	spare := map[types.UID]bool{}
	for i, m := range g.Members {
		spare[g.Pods[i].UID] = waits(m)
	}
	for _, pod := range p.pods {
		delete(spare, pod.UID)
	}

	return spare
}

// alike reports whether a pod can take the reserved place of another one.
func alike(a, b *corev1.Pod) bool {
	return a.Labels[decide.SubGroupLabel] == b.Labels[decide.SubGroupLabel] && decide.Shape(a, false) == decide.Shape(b, false)
}

// claimMargin is what a reservation may take beyond the termination of its victims: for
// writing it down with errors, for victims that are late, and for placing the gang.
const claimMargin = 5 * time.Minute

// latest returns when the reservation of a plan has to end: a scheduler that crashes again
// and again must not keep room forever.
func (p *plan) latest(now time.Time) time.Time {
	deadline := now
	for _, pod := range p.victims {
		ends := now
		switch grace := pod.Spec.TerminationGracePeriodSeconds; {
		case pod.DeletionTimestamp != nil:
			ends = pod.DeletionTimestamp.Time
		case grace != nil:
			ends = now.Add(time.Duration(*grace) * time.Second)
		}
		if ends.After(deadline) {
			deadline = ends
		}
	}

	return deadline.Add(claimMargin)
}
