package plainpreemption

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/arbor-control/arbor/engine/gang"
)

// A nodeUnit is what leaves together with a pod of one node.
type nodeUnit struct {
	// pods are the victims, and places those of them that the snapshot has.
	pods   []*corev1.Pod
	places []snapshotPod

	priority int32
	started  time.Time // the earliest of its pods
	// violations is how many of its pods violate a PodDisruptionBudget.
	violations int

	gang    *runningGang // nil if no gang loses anything with it
	members []int
}

// yieldsTo reports whether a plain pod of a higher priority may preempt the gang. Nodes
// need their agents, so system-critical pods always may.
func (g *runningGang) yieldsTo(priority int32) bool {
	return g.preemptible || priority >= scheduling.SystemCriticalPriority
}

// unitsOn returns the units that touch a node and that a pod of the given
// priority may preempt, the most important first. If local is set, units that
// have pods on other nodes as well are left out.
func (r *runningGangs) unitsOn(node fwk.NodeInfo, priority int32, local bool) []*nodeUnit {
	var (
		units []*nodeUnit
		gangs []*runningGang
	)
	here := map[*runningGang][]int{}
	for _, info := range node.GetPods() {
		g, member := r.of(info.GetPod())
		switch own := r.priority(info.GetPod()); {
		case own >= priority:
		case g == nil:
			units = append(units, singleUnit(info, node, own))
		case member < 0: // it leaves anyway
			units = append(units, singleUnit(info, node, math.MinInt32))
		case g.yieldsTo(priority):
			if here[g] == nil {
				gangs = append(gangs, g)
			}
			here[g] = append(here[g], member)
		}
	}
	for _, g := range gangs {
		for _, u := range g.units(here[g]) {
			if !local || u.within(node.Node().Name) {
				units = append(units, u)
			}
		}
	}
	slices.SortStableFunc(units, byImportance)

	return units
}

// byImportance compares as kube-scheduler does. Of units with the same priority,
// the larger one is more important, so that a whole gang is the last to leave.
func byImportance(a, b *nodeUnit) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(len(b.pods), len(a.pods)), a.started.Compare(b.started))
}

func singleUnit(info fwk.PodInfo, node fwk.NodeInfo, priority int32) *nodeUnit {
	return &nodeUnit{
		pods: []*corev1.Pod{info.GetPod()}, places: []snapshotPod{{pod: info, node: node}},
		priority: priority, started: util.GetPodStartTime(info.GetPod()).Time,
	}
}

// within reports whether all pods of the unit are on one node.
func (u *nodeUnit) within(node string) bool {
	return !slices.ContainsFunc(u.pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != node })
}

// units divides the gang so that all of the given members leave: first those that
// leave alone, then the smallest subgroups.
func (g *runningGang) units(here []int) []*nodeUnit {
	if g.Tree == nil {
		all := make([]int, len(g.Pods))
		for i := range all {
			all[i] = i
		}

		return []*nodeUnit{g.unit(all)}
	}
	var units []*nodeUnit
	losses := gang.NewLosses(g.Tree, g.Members, g.Rules)
	// Members are in the order of their importance.
	left := slices.Sorted(slices.Values(here))
	slices.Reverse(left)
	leaves := sets.New[int]()
	left = slices.DeleteFunc(left, func(m int) bool {
		if len(losses.With(m)) == 1 {
			units = append(units, g.unit(losses.Take(m)))

			return true
		}
		known := leaves.Has(g.Members[m].Leaf) // whose members leave together
		leaves.Insert(g.Members[m].Leaf)

		return known
	})
	for len(left) > 0 {
		first := slices.MinFunc(left, func(a, b int) int { return cmp.Compare(len(losses.With(a)), len(losses.With(b))) })
		units = append(units, g.unit(losses.Take(first)))
		left = slices.DeleteFunc(left, func(m int) bool { return losses.With(m) == nil })
	}

	return units
}

// unit returns the unit of some members.
func (g *runningGang) unit(members []int) *nodeUnit {
	u := &nodeUnit{gang: g, members: members, priority: g.priority, started: time.Now()}
	for _, m := range members {
		pod := g.Pods[m]
		if pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		u.pods = append(u.pods, pod)
		if g.places[m].pod != nil {
			u.places = append(u.places, g.places[m])
		}
		if at := util.GetPodStartTime(pod).Time; at.Before(u.started) {
			u.started = at
		}
	}

	return u
}

// mayStay reports whether the gang of a unit is not broken if the unit stays and
// the other units that are still gone do not.
func (u *nodeUnit) mayStay(gone []*nodeUnit) bool {
	if u.gang == nil || u.gang.Tree == nil {
		return true
	}
	left := make([]bool, len(u.gang.Members))
	for _, other := range gone {
		if other.gang == u.gang && other != u {
			for _, m := range other.members {
				left[m] = true
			}
		}
	}

	return !gang.Broken(u.gang.Tree, u.gang.Members, u.gang.Rules, func(m int) bool { return left[m] })
}

// countViolations counts, in the order of the units, the pods whose loss violates
// a PodDisruptionBudget.
func countViolations(units []*nodeUnit, pdbs []*policyv1.PodDisruptionBudget) {
	all := newBudgets(pdbs)
	for _, u := range units {
		for _, pod := range u.pods {
			if all.violatedBy(pod) {
				u.violations++
			}
		}
	}
}

// budgets are PodDisruptionBudgets, and how many more pods each allows to evict.
type budgets struct {
	pdbs      []*policyv1.PodDisruptionBudget
	selectors []labels.Selector
	allowed   []int32
}

// newBudgets reads PodDisruptionBudgets as DefaultPreemption does, which ignores
// those with an empty selector.
func newBudgets(pdbs []*policyv1.PodDisruptionBudget) *budgets {
	b := &budgets{pdbs: pdbs, selectors: make([]labels.Selector, len(pdbs)), allowed: make([]int32, len(pdbs))}
	for i, pdb := range pdbs {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil || selector.Empty() {
			selector = labels.Nothing()
		}
		b.selectors[i], b.allowed[i] = selector, pdb.Status.DisruptionsAllowed
	}

	return b
}

// violatedBy counts the loss of a pod, and reports whether it violates a budget.
func (b *budgets) violatedBy(pod *corev1.Pod) bool {
	violated := false
	for i, pdb := range b.pdbs {
		_, processed := pdb.Status.DisruptedPods[pod.Name]
		if pdb.Namespace != pod.Namespace || processed || !b.selectors[i].Matches(labels.Set(pod.Labels)) {
			continue
		}
		b.allowed[i]--
		violated = violated || b.allowed[i] < 0
	}

	return violated
}
