package scheduling

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
)

// Reasons of a pod's condition PodScheduled that are never on a PodGroup.
const (
	// ReasonGroupNotFound means that the PodGroup that the pod names does not
	// exist.
	ReasonGroupNotFound = "PodGroupNotFound"
	// ReasonSubGroupIncomplete means that the pod's subgroup, which is optional,
	// does not have enough pods.
	ReasonSubGroupIncomplete = "SubGroupIncomplete"
)

// preemptibleBelow is the priority below which a group that does not set
// spec.preemptibility is preemptible.
const preemptibleBelow = 100

// Preemptible reports whether a more important gang may preempt a group.
func Preemptible(pg *v2alpha2.PodGroup, priority int32) bool {
	switch pg.Spec.Preemptibility {
	case v2alpha2.Preemptible:
		return true
	case v2alpha2.NonPreemptible:
		return false
	default:
		return priority < preemptibleBelow
	}
}

// Sentence explains a decision to the pods that still wait.
func Sentence(g *Gang, decision *gang.Decision) string {
	name := "gang " + g.Group.Namespace + "/" + g.Group.Name
	if decision.Fits {
		return name + " has its minimum; there is no room for more of its pods now"
	}

	return name + ": " + decision.Reason(g.Tree)
}

// Alike reports whether two messages differ in nothing but figures: words that
// are numbers, or two numbers with a slash. The digits in a name are not figures.
// Figures change with everything that happens in a cluster, and to write them
// each time would be a write for each pod at each event.
func Alike(a, b string) bool {
	return slices.EqualFunc(strings.Fields(a), strings.Fields(b), func(a, b string) bool {
		return a == b || isFigure(a) && isFigure(b)
	})
}

func isFigure(word string) bool {
	of, all, both := strings.Cut(strings.Trim(word, "(),.:;"), "/")

	return isNumber(of) && (!both || isNumber(all))
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Shown reports whether a group has the status that it should have. A CRD that
// was installed with another scheduler may not have the counts, or the generation
// of conditions: they are compared only if it does.
func Shown(pg *v2alpha2.PodGroup, want v2alpha2.PodGroupStatus, counts bool) bool {
	has := pg.Status
	if c := conditionOf(has); c != nil && c.ObservedGeneration == 0 {
		want.Conditions = slices.Clone(want.Conditions)
		for i := range want.Conditions {
			if want.Conditions[i].Type != v2alpha2.PodGroupValid {
				want.Conditions[i].ObservedGeneration = 0
			}
		}
	}
	if !counts {
		has.Placed, has.SubGroups, want.Placed, want.SubGroups = nil, nil, nil, nil
	}

	return equality.Semantic.DeepEqual(has, want)
}

// Keep leaves out of want what is not worth a write at once: the message of the
// condition Scheduled, if only figures differ that the cluster has changed, and
// not the group; and the sums of resources, if nothing else differs. It reports
// whether it did.
func Keep(pg *v2alpha2.PodGroup, want *v2alpha2.PodGroupStatus, counts bool) bool {
	kept := false
	has, wants := conditionOf(pg.Status), conditionOf(*want)
	if has != nil && wants != nil && has.Reason == wants.Reason && has.ObservedGeneration == wants.ObservedGeneration &&
		has.Message != wants.Message && Alike(has.Message, wants.Message) {
		wants.Message = has.Message
		showUnschedulable(want, wants.LastTransitionTime)
		kept = true
	}
	rest := *want
	rest.ResourcesStatus = pg.Status.ResourcesStatus
	if !Shown(pg, *want, counts) && Shown(pg, rest, counts) {
		*want = rest
		kept = true
	}

	return kept
}

// Passing reports whether the condition Scheduled is about to get a reason that
// most gangs have for a moment only, on their way to being placed.
func Passing(pg *v2alpha2.PodGroup, want v2alpha2.PodGroupStatus) bool {
	has, wants := conditionOf(pg.Status), conditionOf(want)
	if wants == nil || has != nil && has.Reason == wants.Reason {
		return false
	}

	return wants.Reason == v2alpha2.ReasonPending || wants.Reason == v2alpha2.ReasonBinding || wants.Reason == v2alpha2.ReasonTooFewPods
}

// Changed reports whether the condition Scheduled gets another status or reason.
func Changed(pg *v2alpha2.PodGroup, want v2alpha2.PodGroupStatus) bool {
	has, wants := conditionOf(pg.Status), conditionOf(want)

	return wants != nil && (has == nil || has.Status != wants.Status || has.Reason != wants.Reason)
}

// Transition returns the condition Scheduled and the type of its event if the
// change deserves one: the group was placed, has lost its place, or cannot be
// placed for another reason.
func Transition(pg *v2alpha2.PodGroup, want v2alpha2.PodGroupStatus) (kind string, c *v2alpha2.PodGroupCondition) {
	if !Changed(pg, want) {
		return "", nil
	}
	c = conditionOf(want)
	switch {
	case c.Status == metav1.ConditionTrue:
		return corev1.EventTypeNormal, c
	case c.Reason == v2alpha2.ReasonPending || c.Reason == v2alpha2.ReasonBinding || c.Reason == v2alpha2.ReasonPreempting:
		return "", nil // preemption has an event of its own
	}

	return corev1.EventTypeWarning, c
}

// conditionOf returns the condition Scheduled.
func conditionOf(status v2alpha2.PodGroupStatus) *v2alpha2.PodGroupCondition {
	i := slices.IndexFunc(status.Conditions, func(c v2alpha2.PodGroupCondition) bool { return c.Type == v2alpha2.PodGroupScheduled })
	if i < 0 {
		return nil
	}

	return &status.Conditions[i]
}
