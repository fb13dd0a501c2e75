package pools

import (
	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/show"
)

// PoolsView is what arbor pools prints for programs.
type PoolsView struct {
	// Pools are a flat list, parents before what was taken from them.
	Pools []PoolNodeView `json:"pools"`
}

// A PoolNodeView is one pool among the others of its namespace.
type PoolNodeView struct {
	PoolView

	// Depth is 1 for a root, and 0 where a parent is missing or a pool is taken
	// from itself.
	Depth int `json:"depth"`
	// Children are the pools that were taken from it, as they are drawn.
	Children []string `json:"children"`
}

// A PoolView is one pool.
type PoolView struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	CIDR      string            `json:"cidr"`
	Parent    string            `json:"parent,omitempty"`
	Strategy  v1alpha1.Strategy `json:"strategy"`
	// Subnets, ChildPools and WaitingClaims are counted from the objects.
	Subnets       int `json:"subnets"`
	ChildPools    int `json:"childPools"`
	WaitingClaims int `json:"waitingClaims"`

	SpaceView //nolint:embeddedstructfieldcheck // this is the order in which JSON shows them

	// Exhausted is true when no block of the default size is left.
	Exhausted bool `json:"exhausted"`
	// StatusBehind is true when the status tells something else.
	StatusBehind bool            `json:"statusBehind"`
	Notes        []show.NoteView `json:"notes"`
}

// A SpaceView is how much of a pool is taken, and what is left.
type SpaceView struct {
	UtilizationPercent   int32 `json:"utilizationPercent"`
	FragmentationPercent int32 `json:"fragmentationPercent"`
	// LargestFree is the length of the largest free block, absent if nothing
	// is free.
	LargestFree *int `json:"largestFree,omitempty"`
	// Free counts the maximal free blocks.
	Free []FreeSize `json:"free"`
}

func poolsViewOf(trees []*poolTree) PoolsView {
	out := PoolsView{Pools: []PoolNodeView{}}

	for _, t := range trees {
		t.each(func(n poolNode) {
			v := PoolNodeView{PoolView: poolViewOf(n.stock, n.notes), Depth: n.Depth, Children: []string{}}
			for _, c := range n.Children {
				v.Children = append(v.Children, t.nodes[c].Name)
			}

			out.Pools = append(out.Pools, v)
		})
	}

	return out
}

func poolViewOf(s *stock, notes []render.Note) PoolView {
	v := PoolView{
		Namespace: s.Namespace, Name: s.Name, CIDR: s.Spec.CIDR, Parent: s.ParentName(), Strategy: s.strategy(),
		Subnets: s.live(), ChildPools: s.Delegated, WaitingClaims: len(s.queue),
		SpaceView: SpaceView{Free: []FreeSize{}}, StatusBehind: s.behind, Notes: []show.NoteView{},
	}

	for _, n := range notes {
		v.Notes = append(v.Notes, show.NoteView{Severity: n.Severity, Message: n.Text})
	}

	if s.All != nil {
		v.SpaceView, v.Exhausted = spaceViewOf(s.All), s.exhausted()
	}

	return v
}

func spaceViewOf(p *cidr.Pool) SpaceView {
	v := SpaceView{
		UtilizationPercent: int32(p.Utilisation() * 100), FragmentationPercent: int32(p.Fragmentation() * 100), Free: freeSizes(p),
	}

	if largest, ok := p.Largest(); ok {
		v.LargestFree = &largest
	}

	return v
}
