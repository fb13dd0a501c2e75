package ipam

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// PoolsView is what arbor pools prints for programs.
type PoolsView struct {
	// Pools are a flat list, parents before what was taken from them.
	Pools []PoolNodeView `json:"pools"`
}

// PoolsKind is the kind of the document that a [PoolsView] is.
const PoolsKind = "PoolTrees"

// Refs are the pools of the view.
func (v PoolsView) Refs() []identity.Ref {
	out := make([]identity.Ref, len(v.Pools))
	for i, p := range v.Pools {
		out[i] = p.ref()
	}

	return out
}

// Wrong reports whether a pool has an error.
func (v PoolsView) Wrong() bool {
	return slices.ContainsFunc(v.Pools, func(p PoolNodeView) bool { return p.Wrong() })
}

// Rows are a table with one row for each pool, below headers: with the namespace if pools of all of them
// are shown, and with what is wrong if it is wide.
func (v PoolsView) Rows(namespaces, wide bool) [][]string {
	rows := [][]string{{"NAMESPACE", "NAME", "CIDR", "TAKEN", "SUBNETS", "CHILDPOOLS", "WAITING", "LARGESTFREE", "PARENT", "STRATEGY", "FRAGMENTED", "NOTES"}}
	for _, p := range v.Pools {
		rows = append(rows, p.row())
	}
	const narrow = 4 // only a wide table has the last columns
	for i := range rows {
		if !wide {
			rows[i] = rows[i][:len(rows[i])-narrow]
		}
		if !namespaces {
			rows[i] = rows[i][1:]
		}
	}

	return rows
}

func (v PoolView) row() []string {
	largest := ""
	if v.LargestFree != nil {
		largest = fmt.Sprintf("/%d", *v.LargestFree)
	}
	notes := make([]string, len(v.Notes))
	for i, n := range v.Notes {
		notes[i] = n.Message
	}

	return []string{
		v.Namespace, v.Name, v.CIDR, fmt.Sprintf("%d%%", v.UtilizationPercent), strconv.Itoa(v.Subnets), strconv.Itoa(v.ChildPools), strconv.Itoa(v.WaitingClaims), largest,
		v.Parent, string(v.Strategy), fmt.Sprintf("%d%%", v.FragmentationPercent), strings.Join(notes, "; "),
	}
}

// Wrong reports whether the pool has an error.
func (v PoolView) Wrong() bool {
	return slices.ContainsFunc(v.Notes, func(n show.NoteView) bool { return n.Severity == show.SeverityError })
}

func (v PoolView) ref() identity.Ref { return refOf(v1alpha1.SubnetPoolKind, v.Namespace, v.Name) }

func refOf(kind, namespace, name string) identity.Ref {
	return identity.Ref{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Namespace: namespace, Name: name}
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

// PoolsViewOf returns the view of trees.
func PoolsViewOf(trees []*Tree) PoolsView {
	out := PoolsView{Pools: []PoolNodeView{}}

	for _, t := range trees {
		t.Each(func(n Node) {
			v := PoolNodeView{PoolView: poolViewOf(n.Pool, n.Notes), Depth: n.Depth, Children: []string{}}
			for _, c := range n.Children {
				v.Children = append(v.Children, t.Pools[c].Name)
			}

			out.Pools = append(out.Pools, v)
		})
	}

	return out
}

func poolViewOf(s *ipamplan.Pool, notes []show.NoteView) PoolView {
	v := PoolView{
		Namespace: s.Namespace, Name: s.Name, CIDR: s.Spec.CIDR, Parent: s.ParentName(), Strategy: s.Strategy(),
		Subnets: s.Live(), ChildPools: s.Delegated, WaitingClaims: len(s.Queue),
		SpaceView: SpaceView{Free: []FreeSize{}}, StatusBehind: s.Behind, Notes: show.List(notes),
	}

	if s.All != nil {
		v.SpaceView, v.Exhausted = spaceViewOf(s.All), s.Exhausted()
	}

	return v
}

func spaceViewOf(p *cidr.Pool) SpaceView {
	v := SpaceView{
		UtilizationPercent: int32(p.Utilisation() * 100), FragmentationPercent: int32(p.Fragmentation() * 100), Free: FreeSizes(p),
	}

	if largest, ok := p.Largest(); ok {
		v.LargestFree = &largest
	}

	return v
}

// A FreeSize says how many maximal free blocks of a length there are.
type FreeSize struct {
	Length int `json:"length"`
	Count  int `json:"count"`
}

// FreeSizes counts the maximal free blocks, the largest first.
func FreeSizes(p *cidr.Pool) []FreeSize {
	var counts [129]int
	for b := range p.Free() {
		counts[b.Bits()]++
	}

	out := []FreeSize{}

	for length := range counts {
		if n := counts[length]; n > 0 {
			out = append(out, FreeSize{length, n})
		}
	}

	return out
}
