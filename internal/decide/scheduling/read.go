package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

const (
	GroupAnnotation = "pod-group-name"
	SubGroupLabel   = "kai.scheduler/subgroup-name"
)

const (
	ReasonTooFewPods     = "TooFewPods"
	ReasonGroupNotFound  = "PodGroupNotFound"
	ReasonSchedulerError = "SchedulerError"
	ReasonInvalid        = "Invalid"
)

type Gang struct {
	Group   *v2alpha2.PodGroup
	Tree    *podtree.Tree
	Pods    []*corev1.Pod
	Members []gang.Member
	Rules   gang.Rules
}

type Refusal struct{ Reason, Message string }

func GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	name := pod.Annotations[GroupAnnotation]

	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, name != ""
}

func Read(pg *v2alpha2.PodGroup, pods []*corev1.Pod, rules gang.Rules) (*Gang, *Refusal) {
	spec := podtree.Spec{MinMember: pg.Spec.MinMember, MinSubGroup: pg.Spec.MinSubGroup}
	for _, s := range pg.Spec.SubGroups {
		spec.SubGroups = append(spec.SubGroups, podtree.SubGroup{Name: s.Name, Parent: s.Parent, MinMember: s.MinMember, MinSubGroup: s.MinSubGroup})
	}
	tree, err := podtree.New(spec)
	if err != nil {
		return nil, &Refusal{ReasonInvalid, err.Error()}
	}
	g := &Gang{Group: pg, Tree: tree, Rules: rules}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed {
			continue
		}
		name := p.Labels[SubGroupLabel]
		if len(pg.Spec.SubGroups) == 0 {
			name = podtree.DefaultLeaf
		}
		leaf, ok := tree.Leaf(name)
		if !ok {
			return nil, &Refusal{ReasonInvalid, fmt.Sprintf("pod %s names subgroup %q", p.Name, name)}
		}
		m := gang.Member{Name: p.Name, Leaf: leaf}
		switch {
		case p.Spec.NodeName != "" || p.Status.Phase == corev1.PodSucceeded:
			m.State = gang.Placed
		case len(p.Spec.SchedulingGates) > 0:
			m.State = gang.Held
		}
		g.Pods = append(g.Pods, p)
		g.Members = append(g.Members, m)
	}

	return g, nil
}
