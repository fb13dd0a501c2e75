package gang

import (
	"cmp"
	"context"
	"slices"

	"github.com/arbor-control/arbor/engine/podtree"
)

// maxAttempts is how often a node of the tree is attempted. Real trees need a handful of attempts;
// without a bound, a tree of many optional levels could be written that takes forever.
const maxAttempts = 16

// A run is the work of one Place.
type run struct {
	*census

	ctx     context.Context //nolint:containedctx // a run is one call
	members []Member
	world   World

	// waiting members of each leaf, in the order given.
	waiting [][]int
	// shape numbers members that are alike; misfits are by that number.
	shape       []int
	pastMisfits []pastMisfit
	// version of the World: misfits of another version are void.
	version int

	// ok nodes have their minimum. A set is ok as soon as its children are; its
	// own minimum of pods is filled up later, see fill.
	ok []bool
	// taken members were placed by this run.
	taken []bool
	// filled is how many of them are at a leaf, or below a set that has a
	// minimum of pods. above is the nearest such set above a node, or -1.
	filled, above []int
	// places made and nodes that became ok, in order, to be undone.
	places []Placement
	done   []int
	// attempts made on each node.
	attempts []int
	// matters is what orderMatters has found.
	matters []bool

	// Explanations for users. Nothing is noted while quiet, so that they are about the order that
	// the user wrote.
	quiet bool
	notes []note
}

// A pastMisfit is the misfit of a shape, and the version of the World that it is about.
type pastMisfit struct {
	version int
	misfit  *Misfit
}

// A note is why the last attempt on a node failed.
type note struct {
	room     int
	children int
	blocker  int
	misfit   *Misfit
}

// A savepoint is a state to go back to.
type savepoint struct{ world, places, done int }

// How a set is attempted.
type how struct {
	// cheap tries the children with the fewest missing pods first.
	cheap bool
	// closed fills up the minimum of a set before it continues with the next one, so that a set
	// that cannot be filled up is rolled back first.
	closed bool
}

func newRun(ctx context.Context, tree *podtree.Tree, members []Member, world World, rules Rules) *run {
	c := count(tree, members, rules)
	n := tree.Len()
	r := &run{
		census: c, ctx: ctx, members: members, world: world,
		waiting: make([][]int, n), shape: make([]int, len(members)), version: 1,
		ok: slices.Clone(c.satisfied), taken: make([]bool, len(members)),
		filled: make([]int, n), above: make([]int, n),
		attempts: make([]int, n), notes: make([]note, n),
	}
	byShape := map[string]int{}
	for at, m := range members {
		if m.State == Waiting {
			r.waiting[m.Leaf] = append(r.waiting[m.Leaf], at)
		}
		number, known := byShape[m.Shape]
		if !known || m.Shape == "" {
			number = len(r.pastMisfits)
			byShape[m.Shape] = number
			r.pastMisfits = append(r.pastMisfits, pastMisfit{})
		}
		r.shape[at] = number
	}
	for _, i := range r.order {
		r.notes[i].blocker, r.above[i] = -1, -1
		if up := tree.Node(i).Parent; up >= 0 {
			if r.above[i] = up; r.min[up] == 0 {
				r.above[i] = r.above[up]
			}
		}
	}

	return r
}

func (r *run) mark() savepoint {
	return savepoint{world: r.world.Mark(), places: len(r.places), done: len(r.done)}
}

func (r *run) rollback(to savepoint) {
	if len(r.places) > to.places {
		r.world.Rollback(to.world)
		r.version++
	}
	for _, p := range r.places[to.places:] {
		r.taken[p.Member] = false
		r.add(r.members[p.Member].Leaf, -1)
	}
	for _, i := range r.done[to.done:] {
		r.ok[i] = false
	}
	r.places, r.done = r.places[:to.places], r.done[:to.done]
}

// try asks the World, unless it has answered already.
func (r *run) try(member int) (bool, *Misfit, error) {
	known := &r.pastMisfits[r.shape[member]]
	if known.version == r.version {
		return false, known.misfit, nil
	}
	if err := r.ctx.Err(); err != nil {
		return false, nil, err
	}
	node, misfit, err := r.world.Try(r.ctx, member)
	if err != nil {
		return false, nil, err
	}
	if misfit != nil {
		*known = pastMisfit{version: r.version, misfit: misfit}

		return false, misfit, nil
	}
	r.version++
	r.places = append(r.places, Placement{Member: member, Node: node})
	r.taken[member] = true
	r.add(r.members[member].Leaf, 1)

	return true, nil, nil
}

// add counts a place at a leaf for those who ask.
func (r *run) add(leaf, n int) {
	for i := leaf; i >= 0; i = r.above[i] {
		r.filled[i] += n
	}
}

// whole satisfies a node with everything below it that it needs, or changes
// nothing. Minimums of leaves and of children come first, and sets are filled
// up to their own minimum after all of these. If that does not work out, each
// set is filled up in its turn, so that one that cannot be gives way to the
// next.
func (r *run) whole(i int) (bool, error) {
	if r.ok[i] {
		return true, nil
	}
	begin := r.mark()
	if ok, err := r.attempt(i, how{}); err != nil || !ok {
		return false, err
	}
	if ok, err := r.fillAll(i); err != nil || ok {
		return ok, err
	}
	r.rollback(begin)

	return r.quietly(func() (bool, error) { return r.attempt(i, how{closed: true}) })
}

func (r *run) quietly(do func() (bool, error)) (bool, error) {
	before := r.quiet
	r.quiet = true
	defer func() { r.quiet = before }()

	return do()
}

// attempt satisfies a node, or changes nothing.
func (r *run) attempt(i int, h how) (bool, error) {
	if !r.enough(i) {
		r.noteLack(i)

		return false, nil
	}
	if r.attempts[i]++; r.attempts[i] > maxAttempts {
		return false, nil
	}
	begin := r.mark()
	var ok bool
	var err error
	if r.tree.Node(i).IsLeaf() {
		ok, err = r.attemptLeaf(i)
	} else {
		ok, err = r.attemptSet(i, h)
	}
	if err != nil {
		return false, err
	}
	if ok {
		r.ok[i] = true
		r.done = append(r.done, i)

		return true, nil
	}
	useless := len(r.places) == begin.places
	r.rollback(begin)
	if h.cheap || useless || !r.orderMatters()[i] {
		return false, nil
	}

	return r.quietly(func() (bool, error) { return r.attempt(i, how{cheap: true, closed: h.closed}) })
}

func (r *run) attemptLeaf(i int) (bool, error) {
	missing := r.min[i] - r.bound[i]
	found, misfit, err := r.singles(i, missing)
	// A member that is placed later may make a place for one that did not fit: pods with affinity
	// to each other, or that are evenly spread.
	for more := found; err == nil && more > 0 && found < missing; {
		more, _, err = r.singles(i, missing-found)
		found += more
	}
	if err != nil {
		return false, err
	}
	r.note(i, note{room: found, blocker: -1, misfit: misfit})

	return found >= missing, nil
}

func (r *run) attemptSet(i int, h how) (bool, error) {
	got := 0
	for _, child := range r.tree.Node(i).Children {
		if r.ok[child] {
			got++
		}
	}
	all := r.required[i] >= len(r.tree.Node(i).Children)
	blocker := -1
	for _, child := range r.candidates(i, h, r.ok) {
		if got >= r.required[i] {
			break
		}
		ok, err := r.attempt(child, h)
		if err != nil {
			return false, err
		}
		if ok {
			got++

			continue
		}
		if blocker < 0 {
			blocker = child
		}
		if all {
			break
		}
	}
	if got < r.required[i] {
		r.note(i, note{children: got, blocker: blocker})

		return false, nil
	}
	if !h.closed {
		return true, nil
	}

	return r.fill(i)
}

// candidates are the children to be tried, in order: those that are not ok.
// Without cheap, those come first that have pods with a place, and the rest in
// list order.
func (r *run) candidates(i int, h how, ok []bool) []int {
	children := r.tree.Node(i).Children
	order := make([]int, 0, len(children))
	for _, child := range children {
		if !ok[child] && (h.cheap || r.bound[child] > 0) {
			order = append(order, child)
		}
	}
	if h.cheap {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.need[a], r.need[b]) })

		return order
	}
	for _, child := range children {
		if !ok[child] && r.bound[child] == 0 {
			order = append(order, child)
		}
	}

	return order
}

// orderMatters reports for each node whether trying the cheapest first is another order, there or
// further below. It is about the state at the beginning, as it is called in the middle of attempts.
func (r *run) orderMatters() []bool {
	if r.matters != nil {
		return r.matters
	}
	r.matters = make([]bool, r.tree.Len())
	for _, i := range slices.Backward(r.order) {
		r.matters[i] = !slices.Equal(r.candidates(i, how{}, r.satisfied), r.candidates(i, how{cheap: true}, r.satisfied)) ||
			slices.ContainsFunc(r.tree.Node(i).Children, func(child int) bool { return r.matters[child] })
	}

	return r.matters
}
