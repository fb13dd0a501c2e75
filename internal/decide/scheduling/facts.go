package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
)

// Facts are what the status of a PodGroup and of its pods is computed from.
type Facts struct {
	Group *v2alpha2.PodGroup
	// Pods are all pods that name the group.
	Pods []*corev1.Pod
	// Gang was read from Group and Pods; nil if it was rejected.
	Gang *Gang
	// Refusal is why it was rejected; nil if it was not.
	Refusal *Refusal
	// Outcome of the last attempt to place the gang; nil if there was none.
	Outcome *Outcome
	// Progress since then; nil if there is none.
	Progress *Progress
	// Class is the PriorityClass that the group names; nil if it names none, or
	// one that does not exist.
	Class *schedulingv1.PriorityClass
	// Priority of the gang.
	Priority int32
}

// About identifies the spec of a PodGroup.
type About struct {
	UID        types.UID
	Generation int64
}

// Spec returns the identity of a group's present spec.
func Spec(pg *v2alpha2.PodGroup) About { return About{UID: pg.UID, Generation: pg.Generation} }

// An Outcome is the result of an attempt to place a gang. It holds for the spec
// that was tried and for no other.
type Outcome struct {
	About

	// Decision of the attempt; nil if it ended with an error.
	Decision *gang.Decision
	// Error is why there is no decision.
	Error *Refusal
	// Message is for the pods that still wait.
	Message string
	// NoRoom has the pods that were tried and did not get a node.
	NoRoom map[types.UID]bool
}

// NewOutcome returns the outcome of an attempt in which the members with tried
// took part.
func NewOutcome(g *Gang, decision *gang.Decision, tried func(member int) bool) *Outcome {
	o := &Outcome{About: Spec(g.Group), Decision: decision, Message: Sentence(g, decision), NoRoom: map[types.UID]bool{}}
	for i, pod := range g.Pods {
		if tried(i) {
			o.NoRoom[pod.UID] = true
		}
	}
	for _, place := range decision.Places {
		delete(o.NoRoom, g.Pods[place.Member].UID)
	}

	return o
}

// Progress is what happens between a decision and the next one: preemption and
// binding.
type Progress struct {
	About

	// Reason is one word in CamelCase.
	Reason string
	// Message is a human-readable explanation.
	Message string
}

// outcome returns the outcome if it is about the present spec.
func (f *Facts) outcome() *Outcome {
	if f.Outcome == nil || f.Outcome.About != Spec(f.Group) {
		return nil
	}

	return f.Outcome
}

// progress returns the progress if it is about the present spec.
func (f *Facts) progress() *Progress {
	if f.Progress == nil || f.Progress.About != Spec(f.Group) {
		return nil
	}

	return f.Progress
}

// obstacle explains why the gang did not fit in the last attempt. It is empty if
// it did, or if there was none for this tree.
func (f *Facts) obstacle() string {
	o := f.outcome()
	if o == nil || o.Decision == nil || o.Decision.Fits || len(o.Decision.Nodes) != f.Gang.Tree.Len() {
		return ""
	}

	return o.Decision.Reason(f.Gang.Tree)
}

// Gate returns why a gang cannot be tried, nil if it can: not enough pods exist,
// or too many of them have scheduling gates.
func (g *Gang) Gate() *Refusal {
	lack := gang.Missing(g.Tree, g.Members, g.Rules)
	if lack == nil {
		return nil
	}
	r := &Refusal{Reason: v2alpha2.ReasonTooFewPods, Message: lack.Message(g.Tree)}
	if n := g.gated(); n > 0 {
		r.Message += fmt.Sprintf("; pods with scheduling gates: %d", n)
	}
	if name := g.statefulSet(); name != "" {
		r.Message += fmt.Sprintf("; StatefulSet %q creates one pod after the other unless its podManagementPolicy is Parallel", name)
	}

	return r
}

func (g *Gang) gated() int {
	n := 0
	for i, m := range g.Members {
		if m.State == gang.Held && len(g.Pods[i].Spec.SchedulingGates) > 0 {
			n++
		}
	}

	return n
}

// statefulSet returns a StatefulSet that has pods in the gang which wait. If it waits for these to
// become ready before it creates more, neither makes progress.
func (g *Gang) statefulSet() string {
	at := slices.IndexFunc(g.Pods, func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOf(pod)

		return owner != nil && owner.Kind == "StatefulSet" && pod.Spec.NodeName == ""
	})
	if at < 0 {
		return ""
	}

	return metav1.GetControllerOf(g.Pods[at]).Name
}

// bound returns the members as the API server knows them: those whose binding is
// still under way do not have a place yet.
func (g *Gang) bound() []gang.Member {
	members := slices.Clone(g.Members)
	for i, pod := range g.Pods {
		if g.Unbound[pod.UID] {
			members[i].State = gang.Waiting
		}
	}

	return members
}
