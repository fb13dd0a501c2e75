package victims

import (
	"fmt"
	"math"
	"slices"

	"github.com/arbor-control/arbor/engine/gang"
)

// Amounts are resources that are counted: a member does not fit on a node where
// less is free than it asks for. None of them is negative, except in Free.
type Amounts struct {
	Resources []Resource
	// Asks has what each member asks for, Free what is free on each node, and
	// Frees what each of the Pods would leave, all by resource. Free may be
	// nil for a node on which no member can be placed.
	Asks, Free, Frees [][]int64
}

// A Resource is how an amount is shown.
type Resource struct {
	// Name follows the figure.
	Name string
	// Unit is how much of it is shown as 1.
	Unit int64
}

// Sums compares, for each resource, what the minimum of the gang asks for at
// least with what would be free if all Pods were evicted. It returns why that is
// not enough, and "" if it may be enough. Only nodes count on which at least one
// member would fit then. It asks no [Cluster].
//
// It never returns a reason for a problem that has a plan: places of members
// take no more from a node than is free there, and a node on which none would
// fit alone has no places.
func Sums(p *Problem) string {
	if p.Amounts == nil {
		return ""
	}
	free := p.freeWithoutAll()
	nodes := p.usable(free)
	for r, resource := range p.Amounts.Resources {
		asks := make([]int64, len(p.Members))
		for i, m := range p.Members {
			if m.State == gang.Waiting {
				asks[i] = p.Amounts.Asks[i][r]
			}
		}
		need, has := gang.Least(p.Tree, p.Members, p.Rules, asks), int64(0)
		for _, node := range nodes {
			has = saturated(has, free[node][r])
		}
		if need > has {
			return resource.tooLittle(need, has, len(nodes), len(p.Pods))
		}
	}

	return ""
}

// freeWithoutAll returns what is free on each node if all Pods are evicted. A
// node that has less than nothing has nothing.
func (p *Problem) freeWithoutAll() [][]int64 {
	free := make([][]int64, p.Nodes)
	for node, amounts := range p.Amounts.Free {
		free[node] = slices.Clone(amounts)
	}
	for i, pod := range p.Pods {
		for r := range free[pod.Node] {
			free[pod.Node][r] = saturated(free[pod.Node][r], p.Amounts.Frees[i][r])
		}
	}
	for _, amounts := range free {
		for r := range amounts {
			amounts[r] = max(0, amounts[r])
		}
	}

	return free
}

// usable returns the nodes on which at least one member that waits fits alone.
func (p *Problem) usable(free [][]int64) []int {
	var kinds [][]int64
	for i, m := range p.Members {
		if m.State == gang.Waiting {
			kinds = append(kinds, p.Amounts.Asks[i])
		}
	}
	slices.SortFunc(kinds, slices.Compare)
	kinds = slices.CompactFunc(kinds, slices.Equal)
	var nodes []int
	for node, has := range free {
		if has != nil && slices.ContainsFunc(kinds, func(asks []int64) bool { return covers(has, asks) }) {
			nodes = append(nodes, node)
		}
	}

	return nodes
}

func covers(has, asks []int64) bool {
	for r := range asks {
		if asks[r] > has[r] {
			return false
		}
	}

	return true
}

// saturated adds an amount that is not negative, without an overflow.
func saturated(sum, amount int64) int64 {
	if sum > math.MaxInt64-amount {
		return math.MaxInt64
	}

	return sum + amount
}

func (r Resource) tooLittle(need, has int64, nodes, pods int) string {
	asked := need / r.Unit
	if need%r.Unit > 0 {
		asked++
	}
	if nodes == 0 {
		return fmt.Sprintf("the minimum asks for %d %s, and no node would have enough for one pod even if all pods that may be preempted (%d) were evicted",
			asked, r.Name, pods)
	}

	return fmt.Sprintf("the minimum asks for %d %s, and the nodes that could take a pod (%d) would have %d even if all pods that may be preempted (%d) were evicted",
		asked, r.Name, nodes, has/r.Unit, pods)
}
