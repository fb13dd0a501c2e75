package victims

import (
	"context"
	"slices"
	"strconv"

	"github.com/arbor-control/arbor/engine/gang"
)

// A world is the [gang.World] in which the gang is placed. A member takes a node
// where it fits without further evictions, or else, if the world evicts, the
// node where they cost least.
type world struct {
	*search

	evicts bool
	steps  []step
	// version of each node, and one of all of them: what was found out about a
	// node counts as long as its stamp is the same.
	version []int
	epoch   int
	// evicted is how many pods of each node are.
	evicted []int
	// rollbacks is how many there were. Evictions may cost less after one.
	rollbacks int
	shapes    map[string]*shape
}

// A step is a place that was made, and how much was chosen before it.
type step struct {
	Place

	chosen int
}

// A shape is what is known about members that are alike.
type shape struct {
	free []answer // by node
	// Needs and costs of evictions, see offers.go.
	needs     []need // by node
	offers    offers
	rollbacks int
}

// An answer is whether a member fits, at a stamp of the node.
type answer struct {
	stamp int
	fits  bool
}

func newWorld(s *search) *world {
	return &world{
		search: s, version: make([]int, s.Nodes), epoch: 1,
		evicted: make([]int, s.Nodes), shapes: map[string]*shape{},
	}
}

func (w *world) stamp(node int) int { return w.version[node] + w.epoch }

// shapeOf returns what is known about a member: nothing, if it has no shape.
func (w *world) shapeOf(member int) *shape {
	name := w.Members[member].Shape
	if known := w.shapes[name]; known != nil {
		return known
	}
	made := &shape{free: make([]answer, w.Nodes), needs: make([]need, w.Nodes)}
	if name != "" {
		w.shapes[name] = made
	}

	return made
}

// Try implements [gang.World].
func (w *world) Try(ctx context.Context, member int) (string, *gang.Misfit, error) {
	sh := w.shapeOf(member)
	node, err := w.freeNode(ctx, sh, member)
	var pods []int
	if err == nil && node < 0 && w.evicts {
		node, pods, err = w.cheapestNode(ctx, sh, member)
	}
	if err != nil {
		return "", nil, err
	}
	if node < 0 {
		return "", &gang.Misfit{Nodes: w.Nodes}, nil
	}
	w.commit(Place{Member: member, Node: node}, pods)

	return strconv.Itoa(node), nil, nil
}

// freeNode returns a node where a member fits without further evictions: the
// preferred one, or one with evicted pods, or the first. It is -1 if there is
// none.
func (w *world) freeNode(ctx context.Context, sh *shape, member int) (int, error) {
	if err := w.ask(ctx, sh, member); err != nil {
		return -1, err
	}
	if w.Prefer != nil {
		if node := w.Prefer(member); node >= 0 && sh.free[node].fits {
			return node, nil
		}
	}
	first := -1
	for node, known := range sh.free {
		switch {
		case !known.fits:
		case w.evicted[node] > 0:
			return node, nil
		case first < 0:
			first = node
		}
	}

	return first, nil
}

// ask updates where members of a shape fit, on the nodes that have changed.
func (w *world) ask(ctx context.Context, sh *shape, member int) error {
	var nodes []int
	for node, known := range sh.free {
		if known.stamp != w.stamp(node) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	fits, err := w.cluster.FitsAny(ctx, member, nodes)
	if err != nil {
		return err
	}
	for i, node := range nodes {
		sh.free[node] = answer{stamp: w.stamp(node), fits: fits[i]}
	}

	return nil
}

// commit evicts pods and places a member.
func (w *world) commit(p Place, pods []int) {
	w.steps = append(w.steps, step{Place: p, chosen: w.numTakes()})
	for _, pod := range w.take(pods) {
		w.cluster.Evict(pod)
		w.touch(pod, 1)
	}
	w.cluster.Place(p.Member, p.Node)
	w.changed(p)
}

func (w *world) touch(pod, n int) {
	node := w.Pods[pod].Node
	w.evicted[node] += n
	w.version[node]++
}

// changed notes that a member is or was on a node. If it has no shape, it may
// matter to other nodes too.
func (w *world) changed(p Place) {
	w.version[p.Node]++
	if w.Members[p.Member].Shape == "" {
		w.epoch++
	}
}

// Mark implements [gang.World].
func (w *world) Mark() int { return len(w.steps) }

// Rollback implements [gang.World].
func (w *world) Rollback(mark int) {
	for _, st := range slices.Backward(w.steps[mark:]) {
		w.cluster.Unplace(st.Member, st.Node)
		w.changed(st.Place)
		if st.chosen == w.numTakes() {
			continue
		}
		for _, pod := range w.order[w.takes[st.chosen].pods:] {
			w.cluster.Restore(pod)
			w.touch(pod, -1)
		}
		w.undoTakes(st.chosen)
	}
	w.steps = w.steps[:mark]
	w.rollbacks++
}

func (w *world) made() []Place {
	all := make([]Place, len(w.steps))
	for i, st := range w.steps {
		all[i] = st.Place
	}

	return all
}
