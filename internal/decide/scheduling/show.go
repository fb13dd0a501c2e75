package scheduling

import (
	"fmt"
	"slices"
	"strings"

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

// Show returns the status that a group should have: the one that it has, with the scheduler's part
// computed again. Only pods that are bound or have succeeded count as placed. An outcome or a
// progress of another spec is ignored; without an outcome, the condition of the same generation
// stays.
func Show(f *Facts, now metav1.Time) v2alpha2.PodGroupStatus {
	status := *f.Group.Status.DeepCopy()
	status.Placed, status.SubGroups = nil, nil
	var reports []gang.Report
	if g := f.Gang; g != nil {
		reports = gang.Satisfied(g.Tree, g.bound(), g.Rules)
		status.Placed = new(int32(reports[g.Tree.Root()].Bound)) //nolint:gosec // no group has so many pods
		status.SubGroups = subGroups(g.Tree, reports)
	}
	if c, known := f.scheduled(reports); known || !stillHolds(f.Group) {
		set(&status, f.Group, c, now)
	}
	f.showClass(&status, now)
	showUnschedulable(&status, now)
	status.ResourcesStatus = f.resources()

	return status
}

// scheduled returns the condition Scheduled. It is not known if the group could
// be tried and was not.
func (f *Facts) scheduled(reports []gang.Report) (c v2alpha2.PodGroupCondition, known bool) {
	c = v2alpha2.PodGroupCondition{Type: v2alpha2.PodGroupScheduled, Status: metav1.ConditionFalse}
	switch {
	case f.Gang == nil:
		c.Reason, c.Message = f.Refusal.Reason, f.Refusal.Message
	case reports[f.Gang.Tree.Root()].Satisfied:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v2alpha2.ReasonScheduled, messageScheduled
	default:
		if gate := f.Gang.Gate(); gate != nil {
			c.Reason, c.Message = gate.Reason, gate.Message
		} else {
			c.Reason, c.Message = f.attempted(reports)
		}
	}
	c.Message = verdict.Shorten(c.Message, maxConditionBytes)

	return c, c.Reason != v2alpha2.ReasonPending || f.outcome() != nil
}

// attempted returns where a gang is that could be placed and is not yet.
func (f *Facts) attempted(reports []gang.Report) (reason, message string) {
	o, p, obstacle := f.outcome(), f.progress(), f.obstacle()
	g := f.Gang
	root := g.Tree.Root()
	if all := gang.Satisfied(g.Tree, g.Members, g.Rules)[root]; all.Satisfied {
		if p != nil && p.Reason == v2alpha2.ReasonBinding {
			return p.Reason, p.Message
		}

		return v2alpha2.ReasonBinding, fmt.Sprintf("%d of %d pods that have a node are bound to it", reports[root].Bound, all.Bound)
	}
	switch {
	case p != nil:
		return p.Reason, p.with(obstacle)
	case obstacle != "":
		return v2alpha2.ReasonUnschedulable, obstacle
	case o != nil && o.Error != nil:
		return o.Error.Reason, o.Error.Message
	}

	return v2alpha2.ReasonPending, messagePending
}

// with returns the message, with the result of the last attempt if there was one.
func (p *Progress) with(obstacle string) string {
	switch {
	case obstacle == "":
		return p.Message
	case p.Reason == v2alpha2.ReasonUnschedulable:
		return strings.TrimSuffix(obstacle, ".") + "; " + p.Message
	default:
		return p.Message + "; last attempt: " + obstacle
	}
}

// noRoom has the reasons of a group that does not fit as things are.
var noRoom = []string{
	v2alpha2.ReasonUnschedulable, v2alpha2.ReasonPreempting, v2alpha2.ReasonPreemptionSearchTooLong,
	v2alpha2.ReasonPreemptionUnproven, v2alpha2.ReasonPreemptionBlocked, v2alpha2.ReasonReservationExpired,
}

// stillHolds reports whether the group has a condition about its present
// generation that another scheduler process may have left and that may still be
// true: that there is no room.
func stillHolds(pg *v2alpha2.PodGroup) bool {
	c := conditionOf(pg.Status)

	return c != nil && slices.Contains(noRoom, c.Reason) && c.ObservedGeneration == pg.Generation
}

// showClass reports a PriorityClass that does not exist.
func (f *Facts) showClass(status *v2alpha2.PodGroupStatus, now metav1.Time) {
	name := f.Group.Spec.PriorityClassName
	if name == "" || f.Class != nil {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c v2alpha2.PodGroupCondition) bool {
			return c.Type == v2alpha2.PodGroupPriorityClassFound
		})

		return
	}
	set(status, f.Group, v2alpha2.PodGroupCondition{
		Type: v2alpha2.PodGroupPriorityClassFound, Status: metav1.ConditionFalse, Reason: v2alpha2.ReasonPriorityClassNotFound,
		Message: fmt.Sprintf("PriorityClass %q does not exist: create it, or change spec.priorityClassName; until then the group has priority %d",
			name, f.Priority),
	}, now)
}

// subGroups returns what each subgroup has, in list order.
func subGroups(tree *podtree.Tree, reports []gang.Report) []v2alpha2.SubGroupStatus {
	var all []v2alpha2.SubGroupStatus
	for i := 1; i < tree.Len() && len(all) < maxSubGroups; i++ {
		node, r := tree.Node(i), reports[i]
		s := v2alpha2.SubGroupStatus{
			Name: node.Name, Pods: int32(r.Pods), Placed: int32(r.Bound), Min: int32(r.Min), //nolint:gosec // no group has so many pods
			Satisfied: r.Satisfied,
		}
		if !node.IsLeaf() || r.MinChildren > 0 {
			s.SatisfiedSubGroups, s.MinSubGroup = new(int32(r.Children)), new(int32(r.MinChildren)) //nolint:gosec // nor so many subgroups
		}
		all = append(all, s)
	}

	return all
}

// set puts a condition in the place of the one of its type. The time of the last
// transition stays unless the status changes.
func set(status *v2alpha2.PodGroupStatus, pg *v2alpha2.PodGroup, c v2alpha2.PodGroupCondition, now metav1.Time) {
	c.LastTransitionTime, c.ObservedGeneration = now, pg.Generation
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
