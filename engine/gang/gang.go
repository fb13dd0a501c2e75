package gang

import (
	"context"
	"fmt"

	"github.com/arbor-control/arbor/engine/podtree"
)

// Rules are how minimums are interpreted. With the zero value, minMember of a subgroup with
// children, and of the gang, counts the pods below.
type Rules struct {
	// LeavesOnly is KAI's reading: minMember counts on leaves only. minSubGroup
	// counts in both.
	LeavesOnly bool
}

// A State is what may be done with a member.
type State int

const (
	// Waiting members may be placed now.
	Waiting State = iota
	// Placed members have their place: bound, running or succeeded.
	Placed
	// Held members exist and may not be placed yet, because of a scheduling
	// gate for example.
	Held
)

// A Member is a pod of the gang.
type Member struct {
	// Name is for words only.
	Name string
	// Leaf is the node of the tree that the member belongs to.
	Leaf  int
	State State
	// Shape identifies members that are alike. To the World, members of one shape are
	// interchangeable: what failed for one fails for the other as long as the World has not
	// changed. A member without a shape is unlike any other.
	Shape string
}

// A World has the places. It is asked by one goroutine.
type World interface {
	// Try finds a place for a member, which is named by its index in the members, and holds that
	// place until it is rolled back. A misfit means that there is none now; an error means that the
	// World does not know.
	Try(ctx context.Context, member int) (node string, misfit *Misfit, err error)
	// Mark names the present state.
	Mark() int
	// Rollback releases, last first, what was held since the mark was made.
	Rollback(mark int)
}

// A Placement is a place that a member has got.
type Placement struct {
	// Member is an index in the members.
	Member int
	Node   string
}

// A Decision is what [Place] has found.
type Decision struct {
	// Fits is whether every minimum is met.
	Fits bool
	// Places in the order in which they were made; none unless the gang fits.
	// They are held in the World.
	Places []Placement
	// Required is how many of Places the minimum needs. They come first; the rest are extras.
	Required int
	// Nodes has a report for each node of the tree, by its number.
	Nodes []Report
	// Blocker is the node of the tree that stands in the way, -1 if the gang
	// fits.
	Blocker int
}

// A Report is how things are at one node of the tree.
type Report struct {
	// Min is how many pods must have a place: own ones at a leaf, those below
	// at a set.
	Min int
	// MinChildren is how many direct children must be satisfied.
	MinChildren int
	// Pods that exist in any state, at the node and below.
	Pods int
	// Bound pods had a place before.
	Bound int
	// New pods got one now.
	New int
	// Held pods may not be placed yet.
	Held int
	// Room is how many further pods found a place in the attempt that failed. At a leaf it is
	// always set, at a set only when its own Min was missed.
	Room int
	// Children is how many direct children are satisfied; if the node is not,
	// how many were in the attempt that failed.
	Children int
	// Satisfied is whether the minimum of the node is met, with what has a place after the
	// decision.
	Satisfied bool
	// Blocker is the direct child that stood in the way. It is -1 if there was
	// none, so that the cause is the node itself.
	Blocker int
	// Misfit is the first misfit that counted, nil if there is none.
	Misfit *Misfit
}

// Place decides for the members of one gang. When the gang fits, its places are
// held in the World on return; otherwise, and on error, the World is as before.
//
// The error is that of the context or of the World, or that a member belongs to no leaf of the
// tree.
func Place(ctx context.Context, tree *podtree.Tree, members []Member, world World, rules Rules) (Decision, error) {
	return place(ctx, tree, members, world, rules, (*run).extras)
}

// PlaceMinimum is Place without the extras: it places only the members that the minimum needs.
func PlaceMinimum(ctx context.Context, tree *podtree.Tree, members []Member, world World, rules Rules) (Decision, error) {
	return place(ctx, tree, members, world, rules, func(*run) error { return nil })
}

func place(ctx context.Context, tree *podtree.Tree, members []Member, world World, rules Rules, extras func(*run) error) (Decision, error) {
	for _, m := range members {
		if m.Leaf < 0 || m.Leaf >= tree.Len() || !tree.Node(m.Leaf).IsLeaf() {
			return Decision{}, fmt.Errorf("member %q belongs to node %d, which is not a leaf of the tree", m.Name, m.Leaf)
		}
	}

	r := newRun(ctx, tree, members, world, rules)
	begin := r.mark()
	fits, err := r.whole(tree.Root())
	required := len(r.places)
	if err == nil && fits {
		err = extras(r)
	}
	if err != nil {
		r.rollback(begin)

		return Decision{}, err
	}

	d := r.decision(fits)
	d.Required = required

	return d, nil
}
