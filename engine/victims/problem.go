package victims

import (
	"context"
	"fmt"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
)

// A Pod is a running pod that may be evicted.
type Pod struct {
	Name string
	// Node is the number of the node on which it runs.
	Node int
	// Gang is an index in Problem.Gangs, -1 for a pod without a gang. Member is
	// the index of the pod in the members of that gang.
	Gang, Member int
	// Priority is the effective one, that of the gang for its members.
	Priority int32
	// Damage is what is lost with the pod: its GPUs, or its CPU if it has none.
	Damage int64
	// Budgets are indexes of the PodDisruptionBudgets that cover it.
	Budgets []int
	// Started is when it started; a larger number is later.
	Started int64
}

// A Gang may lose pods. Placed members without a [Pod] hold no room, because
// they have succeeded for example: they count for the minimums and are never
// evicted.
type Gang struct {
	Tree    *podtree.Tree
	Members []gang.Member
	Rules   gang.Rules
}

// A Problem is a gang without room and the pods that may be evicted for it.
type Problem struct {
	// Tree, Members and Rules are of the gang that needs room, the preemptor.
	Tree    *podtree.Tree
	Members []gang.Member
	Rules   gang.Rules

	// Nodes is how many there are. They are numbered from 0.
	Nodes int
	// Pods are all that may be evicted.
	Pods []Pod
	// Gangs are those of the Pods.
	Gangs []Gang
	// Budgets has, for each PodDisruptionBudget, how many disruptions it
	// allows.
	Budgets []int32
	// HardBudgets forbids plans that violate a budget. Without it, they are the
	// last choice.
	HardBudgets bool
	// Prefer returns the node that is taken for a member if it fits there
	// without an eviction, -1 for none. It may be nil.
	Prefer func(member int) int
	// Amounts are compared before anything is placed, see [Sums]. They may be
	// nil.
	Amounts *Amounts
}

// A Cluster is a copy of the cluster in which placements and evictions are
// tried. One goroutine calls it. Search leaves it as it was.
type Cluster interface {
	// Fits reports whether a member passes on a node as the copy is now.
	Fits(ctx context.Context, member, node int) (bool, error)
	// FitsAny reports the same for several nodes.
	FitsAny(ctx context.Context, member int, nodes []int) ([]bool, error)
	// Place adds a member to a node, Unplace removes it.
	Place(member, node int)
	Unplace(member, node int)
	// Evict removes a pod, which is named by its index in Problem.Pods, and
	// Restore adds it again.
	Evict(pod int)
	Restore(pod int)
}

// An Outcome is how a search ended.
type Outcome int

const (
	// Found means that the victims make room for the places.
	Found Outcome = iota + 1
	// Fits means that the gang fits without an eviction.
	Fits
	// Impossible means that the gang does not fit even without all Pods.
	Impossible
	// Unproven means that no plan passed verification.
	Unproven
	// Insufficient means that the resources of all Pods together are not enough,
	// see [Sums]. It implies Impossible.
	Insufficient
)

// A Place is the node of a member.
type Place struct{ Member, Node int }

// A Result is what [Search] has found.
type Result struct {
	Outcome Outcome
	// Places of the members that the minimum of the gang needs, in the order in
	// which they were made. There are some if the gang fits or victims were
	// found.
	Places []Place
	// Victims are the pods to evict, in ascending order.
	Victims []int
	// Violations is how many evictions are more than the budgets allow.
	Violations int
	// Reason is why there is no plan.
	Reason string
}

// check reports indexes that name nothing.
func (p *Problem) check() error {
	if err := p.checkAmounts(); err != nil {
		return err
	}
	for i := range p.Pods {
		pod := &p.Pods[i]
		if pod.Node < 0 || pod.Node >= p.Nodes {
			return fmt.Errorf("pod %q runs on node %d of %d", pod.Name, pod.Node, p.Nodes)
		}
		for _, b := range pod.Budgets {
			if b < 0 || b >= len(p.Budgets) {
				return fmt.Errorf("pod %q is covered by budget %d of %d", pod.Name, b, len(p.Budgets))
			}
		}
		if err := p.checkMember(pod); err != nil {
			return err
		}
	}

	return nil
}

func (p *Problem) checkAmounts() error {
	a := p.Amounts
	if a != nil && (len(a.Asks) != len(p.Members) || len(a.Free) != p.Nodes || len(a.Frees) != len(p.Pods)) {
		return fmt.Errorf("amounts of %d members, %d nodes and %d pods, want %d, %d and %d",
			len(a.Asks), len(a.Free), len(a.Frees), len(p.Members), p.Nodes, len(p.Pods))
	}

	return nil
}

func (p *Problem) checkMember(pod *Pod) error {
	if pod.Gang < 0 {
		return nil
	}
	if pod.Gang >= len(p.Gangs) {
		return fmt.Errorf("pod %q belongs to gang %d of %d", pod.Name, pod.Gang, len(p.Gangs))
	}
	members := p.Gangs[pod.Gang].Members
	if pod.Member < 0 || pod.Member >= len(members) || members[pod.Member].State != gang.Placed {
		return fmt.Errorf("pod %q is member %d of gang %d, which is not a placed one", pod.Name, pod.Member, pod.Gang)
	}

	return nil
}
