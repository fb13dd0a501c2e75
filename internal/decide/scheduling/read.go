package scheduling

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
)

// How pods join a group.
const (
	GroupAnnotation = v2alpha2.GroupAnnotation
	SubGroupLabel   = v2alpha2.SubGroupLabel
)

// GroupOf returns the PodGroup that a pod names. It is false for plain pods,
// which name none.
func GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	name := pod.Annotations[GroupAnnotation]

	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, name != ""
}

// A Gang is a PodGroup with its pods, ready to be placed.
type Gang struct {
	Group *v2alpha2.PodGroup
	Tree  *podtree.Tree
	// Pods in the order in which they are placed. Those that failed and those
	// that are going away are not among them.
	Pods []*corev1.Pod
	// Members are the same pods in the same order.
	Members []gang.Member
	// Unbound has the placed members that are not bound yet. The scheduler counts
	// them as placed, because it holds their nodes; the status does not.
	Unbound map[types.UID]bool
	Rules   gang.Rules
}

// A Refusal is why a group is not placed however much room there is.
type Refusal struct {
	// Reason is one word in CamelCase.
	Reason string
	// Message names what is wrong and how to fix it.
	Message string
}

// NotFound rejects pods that name a group that does not exist.
func NotFound(key types.NamespacedName) *Refusal {
	return &Refusal{
		Reason:  ReasonGroupNotFound,
		Message: fmt.Sprintf("PodGroup %s does not exist: create it, or remove the annotation %s", key, GroupAnnotation),
	}
}

// Read converts a group and the pods that name it to a gang. The more important and the older pods
// come first. Either the gang or the refusal is nil.
func Read(pg *v2alpha2.PodGroup, pods []*corev1.Pod, rules gang.Rules) (*Gang, *Refusal) {
	if pg.DeletionTimestamp != nil {
		return nil, &Refusal{
			Reason:  v2alpha2.ReasonTerminating,
			Message: fmt.Sprintf("PodGroup %q is being deleted: create it again once it is gone", pg.Name),
		}
	}
	tree, err := podgroup.Tree(pg)
	if err != nil {
		return nil, unusable(pg, err)
	}
	if refusal := topology(pg); refusal != nil {
		return nil, refusal
	}

	g := &Gang{Group: pg, Tree: tree, Pods: living(pods), Rules: rules}
	g.Members = make([]gang.Member, len(g.Pods))
	for i, pod := range g.Pods {
		leaf, refusal := g.leafOf(pod)
		if refusal != nil {
			return nil, refusal
		}
		g.Members[i] = gang.Member{Name: pod.Name, Leaf: leaf, State: state(pod)}
	}
	if refusal := g.oneScheduler(); refusal != nil {
		return nil, refusal
	}

	return g, nil
}

// Compare finds which of the waiting members are alike. It takes a while, and is needed only to
// place them. Labels count if labels is true; see Shape.
func (g *Gang) Compare(labels bool) {
	for i, m := range g.Members {
		if m.State == gang.Waiting {
			g.Members[i].Shape = Shape(g.Pods[i], labels)
		}
	}
}

// living returns the pods that count, in the order in which they are placed.
func living(pods []*corev1.Pod) []*corev1.Pod {
	all := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(priority(b), priority(a)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})

	return all
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}

	return *pod.Spec.Priority
}

func state(pod *corev1.Pod) gang.State {
	switch {
	case pod.Spec.NodeName != "" || pod.Status.Phase == corev1.PodSucceeded:
		return gang.Placed
	case len(pod.Spec.SchedulingGates) > 0:
		return gang.Held
	default:
		return gang.Waiting
	}
}

// unusable names the subgroup that is not part of a tree, and what to do about it.
func unusable(pg *v2alpha2.PodGroup, err error) *Refusal {
	r := &Refusal{Reason: v2alpha2.ReasonInvalid, Message: err.Error()}
	var u *podtree.Unusable
	if !errors.As(err, &u) {
		return r
	}
	r.Message = u.Error()
	field := fmt.Sprintf("spec.subGroups[%d].", u.Index)
	for _, p := range podgroup.Check(pg).Problems {
		if strings.HasPrefix(p.Field, field) && p.Fix != "" {
			r.Message += "; " + p.Fix

			break
		}
	}

	return r
}

// topology rejects a group that requires a topology level: it cannot be guaranteed, and must not be
// dropped silently.
func topology(pg *v2alpha2.PodGroup) *Refusal {
	who, field, level := fmt.Sprintf("PodGroup %q", pg.Name), "spec.topologyConstraint", pg.Spec.TopologyConstraint.RequiredTopologyLevel
	for i, s := range pg.Spec.SubGroups {
		if level != "" {
			break
		}
		if s.TopologyConstraint != nil {
			who, field, level = fmt.Sprintf("subgroup %q", s.Name), fmt.Sprintf("spec.subGroups[%d].topologyConstraint", i), s.TopologyConstraint.RequiredTopologyLevel
		}
	}
	if level == "" {
		return nil
	}

	return &Refusal{
		Reason: v2alpha2.ReasonTopologyNotSupported,
		Message: fmt.Sprintf("%s requires the topology level %q, which this scheduler cannot guarantee: remove %s.requiredTopologyLevel, or use preferredTopologyLevel",
			who, level, field),
	}
}

// leafOf returns the leaf that a pod belongs to. A pod that names none belongs to the leaf default,
// which a group without subgroups has, and other groups may have.
func (g *Gang) leafOf(pod *corev1.Pod) (int, *Refusal) {
	name := pod.Labels[SubGroupLabel]
	leaf, ok := g.Tree.Leaf(cmp.Or(name, podtree.DefaultLeaf))
	if ok {
		return leaf, nil
	}

	if name == "" {
		return 0, &Refusal{
			Reason: v2alpha2.ReasonNoSubGroup,
			Message: fmt.Sprintf("pod %q names no subgroup of PodGroup %q: set its label %s to %s",
				pod.Name, g.Group.Name, SubGroupLabel, oneOf(g.leavesBelow(g.Tree.Root()))),
		}
	}
	wrong := fmt.Sprintf("pod %q names the subgroup %q", pod.Name, name)
	if len(g.Group.Spec.SubGroups) == 0 {
		return 0, &Refusal{
			Reason:  v2alpha2.ReasonUnknownSubGroup,
			Message: fmt.Sprintf("%s, but PodGroup %q has no subgroups: remove its label %s", wrong, g.Group.Name, SubGroupLabel),
		}
	}
	for i, n := range g.Tree.All() {
		if n.Name == name {
			return 0, &Refusal{
				Reason: v2alpha2.ReasonUnknownSubGroup,
				Message: fmt.Sprintf("%s of PodGroup %q, which has subgroups instead of pods: set its label %s to %s",
					wrong, g.Group.Name, SubGroupLabel, oneOf(g.leavesBelow(i))),
			}
		}
	}

	return 0, &Refusal{
		Reason: v2alpha2.ReasonUnknownSubGroup,
		Message: fmt.Sprintf("%s, which PodGroup %q does not have: set its label %s to %s",
			wrong, g.Group.Name, SubGroupLabel, oneOf(g.leavesBelow(g.Tree.Root()))),
	}
}

// leavesBelow returns the names of the leaves below a node.
func (g *Gang) leavesBelow(node int) []string {
	below := make([]bool, g.Tree.Len())
	below[node] = true
	var names []string
	for i, n := range g.Tree.All() {
		below[i] = below[i] || n.Parent >= 0 && below[n.Parent]
		if below[i] && n.IsLeaf() {
			names = append(names, n.Name)
		}
	}

	return names
}

// maxNames is how many names a message lists.
const maxNames = 5

func oneOf(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("%q", names[0])
	}
	quoted := make([]string, 0, maxNames)
	for _, name := range names[:min(maxNames, len(names))] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	text := "one of " + strings.Join(quoted, ", ")
	if more := len(names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}

// oneScheduler rejects pods that name different schedulers: none of these would ever see the whole
// gang. Pods that have a place no longer need one.
func (g *Gang) oneScheduler() *Refusal {
	var first *corev1.Pod
	for i, pod := range g.Pods {
		if g.Members[i].State == gang.Placed {
			continue
		}
		if first == nil {
			first = pod
		}
		if first.Spec.SchedulerName != pod.Spec.SchedulerName {
			return &Refusal{
				Reason: v2alpha2.ReasonSchedulersDiffer,
				Message: fmt.Sprintf("pod %q asks for the scheduler %q and pod %q for %q: give all pods of PodGroup %q the same schedulerName",
					first.Name, first.Spec.SchedulerName, pod.Name, pod.Spec.SchedulerName, g.Group.Name),
			}
		}
	}

	return nil
}
