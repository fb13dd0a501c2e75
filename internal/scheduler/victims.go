package scheduler

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// A unit goes as a whole: a pod, or a gang that would be broken without it.
type unit struct {
	pods     []*corev1.Pod
	priority int32
	whole    bool
	youngest time.Time
}

// units are the pods below a priority, those that are missed least first.
func (p *preemptor) units(key types.NamespacedName, below int32) ([]unit, error) {
	pods, err := p.s.trial.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var units []unit
	gangs := sets.New[types.NamespacedName]()
	for _, pod := range pods {
		of, isMember := decide.GroupOf(pod)
		switch {
		case pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || of == key:
		case isMember:
			gangs.Insert(of)
		case corev1helpers.PodPriority(pod) < below:
			units = append(units, single(pod, corev1helpers.PodPriority(pod)))
		}
	}
	for of := range gangs {
		units = append(units, p.unitsOf(of, below)...)
	}
	slices.SortStableFunc(units, func(a, b unit) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(rankOf(a), rankOf(b)), b.youngest.Compare(a.youngest), cmp.Compare(a.pods[0].Name, b.pods[0].Name))
	})
	pdbs, err := p.budgets.List(labels.Everything())

	return guardedLast(units, pdbs), err
}

// rankOf puts single pods before whole gangs, and small gangs before large.
func rankOf(u unit) int {
	if !u.whole {
		return 0
	}

	return len(u.pods)
}

func single(pod *corev1.Pod, priority int32) unit {
	return unit{pods: []*corev1.Pod{pod}, priority: priority, youngest: pod.CreationTimestamp.Time}
}

// unitsOf divides a gang: pods that it can do without, one by one, and the rest,
// which goes together or not at all.
func (p *preemptor) unitsOf(key types.NamespacedName, below int32) []unit {
	g, why := p.s.groups.read(key)
	if why != nil {
		return nil // nobody knows what it can do without
	}
	priority := p.s.groups.priority(g.Group, g.Pods)
	if priority >= below || !decide.Preemptible(g.Group, priority) {
		return nil
	}
	var units []unit
	rest := unit{priority: priority, whole: true}
	members := slices.Clone(g.Members)
	for i := range slices.Backward(members) {
		pod := g.Pods[i]
		if members[i].State != gang.Placed || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		members[i].State = gang.Held
		if len(gang.Stale(g.Tree, members, g.Rules)) == 0 {
			units = append(units, single(pod, priority))

			continue
		}
		members[i].State = gang.Placed
		rest.pods = append(rest.pods, pod)
		if pod.CreationTimestamp.After(rest.youngest) {
			rest.youngest = pod.CreationTimestamp.Time
		}
	}
	if len(rest.pods) > 0 {
		units = append(units, rest)
	}

	return units
}
