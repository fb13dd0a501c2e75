package scheduling

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

const (
	// maxSubGroups is how many subgroups a status lists, so that the object
	// stays far below what can be stored.
	maxSubGroups = 1000
	// maxConditionBytes is what the API conventions allow a condition's message.
	maxConditionBytes = 32768

	messageScheduled = "every minimum is met"
	messagePending   = "the group waits for its turn"
)

// Show returns the status that belongs on a group now: that which it has, with
// the condition Scheduled and the counts made anew. g is nil if the group was
// refused, and refusal if it was not; decision is nil as long as there is none,
// and its places count as places. Without a decision, what was said of the
// same generation before still holds.
func Show(pg *v2alpha2.PodGroup, g *Gang, decision *gang.Decision, refusal *Refusal, now metav1.Time) v2alpha2.PodGroupStatus {
	status := *pg.Status.DeepCopy()
	var reports []gang.Report
	switch {
	case g == nil:
		status.Placed, status.SubGroups = nil, nil
	case decision != nil:
		reports = decision.Nodes
	default:
		reports = gang.Satisfied(g.Tree, g.Members, g.Rules)
	}
	if g != nil {
		root := reports[g.Tree.Root()]
		status.Placed = new(int32(root.Bound + root.New)) //nolint:gosec // no group has so many pods
		status.SubGroups = subGroups(g.Tree, reports)
	}
	if c, known := scheduled(g, decision, refusal, reports); known || !hasScheduled(pg) {
		c.ObservedGeneration = pg.Generation
		setCondition(&status, c, now)
	}

	return status
}

// scheduled returns the condition. It is not known when nobody has tried.
func scheduled(g *Gang, decision *gang.Decision, refusal *Refusal, reports []gang.Report) (v2alpha2.PodGroupCondition, bool) {
	no := func(reason, message string) v2alpha2.PodGroupCondition {
		return v2alpha2.PodGroupCondition{
			Type: v2alpha2.PodGroupScheduled, Status: metav1.ConditionFalse,
			Reason: reason, Message: verdict.Shorten(message, maxConditionBytes),
		}
	}
	switch {
	case refusal != nil:
		return no(refusal.Reason, refusal.Message), true
	case g == nil:
		return no(v2alpha2.ReasonPending, messagePending), false
	case reports[g.Tree.Root()].Satisfied:
		return v2alpha2.PodGroupCondition{
			Type: v2alpha2.PodGroupScheduled, Status: metav1.ConditionTrue,
			Reason: v2alpha2.ReasonScheduled, Message: messageScheduled,
		}, true
	}
	if lack := gang.Missing(g.Tree, g.Members, g.Rules); lack != nil {
		return no(v2alpha2.ReasonTooFewPods, lack.Sentence(g.Tree)), true
	}
	if decision == nil {
		return no(v2alpha2.ReasonPending, messagePending), false
	}

	return no(v2alpha2.ReasonUnschedulable, decision.Reason(g.Tree)), true
}

// hasScheduled says whether the group has a condition that was said of its
// present generation and may still be true: that there is no room.
func hasScheduled(pg *v2alpha2.PodGroup) bool {
	return slices.ContainsFunc(pg.Status.Conditions, func(c v2alpha2.PodGroupCondition) bool {
		return c.Type == v2alpha2.PodGroupScheduled && c.Reason == v2alpha2.ReasonUnschedulable &&
			c.ObservedGeneration == pg.Generation
	})
}

// subGroups says what each subgroup has, in list order.
func subGroups(tree *podtree.Tree, reports []gang.Report) []v2alpha2.SubGroupStatus {
	var all []v2alpha2.SubGroupStatus
	for i := 1; i < tree.Len() && len(all) < maxSubGroups; i++ {
		node, r := tree.Node(i), reports[i]
		s := v2alpha2.SubGroupStatus{
			Name: node.Name, Pods: int32(r.Pods), Placed: int32(r.Bound + r.New), Min: int32(r.Min), //nolint:gosec // no group has so many pods
			Satisfied: r.Satisfied,
		}
		if !node.IsLeaf() || r.MinChildren > 0 {
			// Of a decision that does not fit, Children is what would have fit.
			s.SatisfiedSubGroups, s.MinSubGroup = new(satisfiedChildren(node, reports)), new(int32(r.MinChildren)) //nolint:gosec // nor so many subgroups
		}
		all = append(all, s)
	}

	return all
}

func satisfiedChildren(node podtree.Node, reports []gang.Report) int32 {
	var n int32
	for _, child := range node.Children {
		if reports[child].Satisfied {
			n++
		}
	}

	return n
}

// setCondition puts a condition where the one of its type is. The time of the
// last transition stays unless the status is another one.
func setCondition(status *v2alpha2.PodGroupStatus, c v2alpha2.PodGroupCondition, now metav1.Time) {
	c.LastTransitionTime = now
	at := slices.IndexFunc(status.Conditions, func(had v2alpha2.PodGroupCondition) bool { return had.Type == c.Type })
	if at < 0 {
		status.Conditions = append(status.Conditions, c)

		return
	}
	had := status.Conditions[at]
	if had.Status == c.Status {
		c.TransitionID = had.TransitionID
		if !had.LastTransitionTime.IsZero() {
			c.LastTransitionTime = had.LastTransitionTime
		}
	}
	status.Conditions[at] = c
}
