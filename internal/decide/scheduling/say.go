package scheduling

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
)

// Reasons why a pod waits for which no PodGroup could have a condition.
const (
	// ReasonGroupNotFound : the PodGroup that the pod names does not exist.
	ReasonGroupNotFound = "PodGroupNotFound"
	// ReasonSchedulerError : the scheduler could not try it, and will.
	ReasonSchedulerError = "SchedulerError"
)

// preemptibleBelow is where groups that say nothing about it stop to be
// preemptible.
const preemptibleBelow = 100

// Preemptible says whether a more important gang may take a group's place.
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

// Sentence says what a decision means to those who still wait.
func Sentence(g *Gang, decision *gang.Decision) string {
	name := "gang " + g.Group.Namespace + "/" + g.Group.Name
	if decision.Fits {
		return name + " has its minimum; there is no room for more of its pods now"
	}

	return name + ": " + decision.Reason(g.Tree)
}

// Waiting is the condition PodScheduled of a pod that waits. Only a pod for
// which there is no room is Unschedulable: nodes are bought for those.
func Waiting(sentence string, refusal *Refusal) *corev1.PodCondition {
	c := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: sentence}
	if refusal != nil {
		c.Reason, c.Message = refusal.Reason, refusal.Message
	}

	return c
}

// Alike says whether two sentences differ in nothing but figures. Those change
// with everything that happens in a cluster, and to write them each time would
// be a write for each pod at each event.
func Alike(a, b string) bool { return withoutFigures(a) == withoutFigures(b) }

func withoutFigures(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}

		return r
	}, s)
}

// Shown says whether what the scheduler has to say of a group is there already.
// A definition that somebody else installed may have no room for counts: those
// are compared only if there is.
func Shown(pg *v2alpha2.PodGroup, want v2alpha2.PodGroupStatus, counts bool) bool {
	has, wants := conditionOf(pg.Status), conditionOf(want)
	if has == nil || wants == nil {
		return wants == nil
	}
	compared := *wants
	if has.ObservedGeneration == 0 {
		compared.ObservedGeneration = 0
	}
	if *has != compared {
		return false
	}

	return !counts || (reflect.DeepEqual(pg.Status.Placed, want.Placed) && slices.EqualFunc(pg.Status.SubGroups, want.SubGroups, func(a, b v2alpha2.SubGroupStatus) bool {
		return reflect.DeepEqual(a, b)
	}))
}

// Keep has the condition Scheduled go on with the words that it has, as long as
// only figures differ that the cluster has changed, and not the group.
func Keep(pg *v2alpha2.PodGroup, want *v2alpha2.PodGroupStatus) {
	has, wants := conditionOf(pg.Status), conditionOf(*want)
	if has != nil && wants != nil && has.Reason == wants.Reason && has.ObservedGeneration == wants.ObservedGeneration && Alike(has.Message, wants.Message) {
		wants.Message = has.Message
	}
}

// Transition returns the condition if people should be told of it: that a group
// now has its place, has lost it, or cannot get one for another reason.
func Transition(pg *v2alpha2.PodGroup, want v2alpha2.PodGroupStatus) (kind string, c *v2alpha2.PodGroupCondition) {
	has, wants := conditionOf(pg.Status), conditionOf(want)
	if wants == nil || wants.Reason == v2alpha2.ReasonPending || (has != nil && has.Status == wants.Status && has.Reason == wants.Reason) {
		return "", nil
	}
	if wants.Status == metav1.ConditionTrue {
		return corev1.EventTypeNormal, wants
	}

	return corev1.EventTypeWarning, wants
}

func conditionOf(status v2alpha2.PodGroupStatus) *v2alpha2.PodGroupCondition {
	i := slices.IndexFunc(status.Conditions, func(c v2alpha2.PodGroupCondition) bool { return c.Type == v2alpha2.PodGroupScheduled })
	if i < 0 {
		return nil
	}

	return &status.Conditions[i]
}
