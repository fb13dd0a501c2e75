package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// take returns the nodes of the scope to move.
func (p *planner) take() []*Node {
	found := p.tree.Select(p.request.Scope)
	for _, n := range found.Lifted {
		p.note(Note{Reason: Lifted, Fields: fieldpath.NewSet(n.Path())})
	}
	for _, n := range found.Opaque {
		p.note(Note{Reason: KeysUnknown, Fields: fieldpath.NewSet(n.Path())})
	}
	k := &taker{
		planner: p,
		mine:    make([]bool, len(p.Before)), updates: make([]bool, len(p.Before)),
		taken: make([]bool, p.tree.count),
	}
	for i, e := range p.Before {
		k.mine[i] = e.Manager == p.request.To && e.Subresource == ""
		k.updates[i] = k.mine[i] && e.Operation == Update
	}
	previous, next := cursorOf(p.request.Previous), cursorOf(p.request.Next)
	for _, n := range found.Nodes {
		if p.request.Mode == Whole {
			k.whole(n, false)
		} else {
			k.needed(n, previous.at(n), next.at(n))
		}
	}

	var taken []*Node
	for n := range p.tree.root.All() {
		if k.taken[n.id] {
			taken = append(taken, n)
		}
	}

	return taken
}

type taker struct {
	*planner

	// mine are the entries with the applier's name, and updates those of them that are not its
	// Apply entry.
	mine, updates []bool
	// taken is indexed by the id of a node.
	taken []bool
}

// whole takes a node and everything below it. inItem reports whether the node is in an item that is
// removed as one.
func (k *taker) whole(n *Node, inItem bool) {
	if !k.allowed(n) {
		return
	}
	k.taken[n.id] = true
	if n.isUnit() && (n.isItem() || !inItem) {
		k.units = append(k.units, n)
	}
	inItem = inItem || n.isItem() && !cursorOf(k.request.Next).at(n).any()
	for _, c := range n.Children {
		k.whole(c, inItem)
	}
}

// needed takes the fields of a node that the applier names, named before, or partly owns.
func (k *taker) needed(n *Node, previous, next cursor) {
	if !previous.any() && !next.any() && !among(k.mine, n.Owners) || !k.allowed(n) {
		return
	}
	if n.isUnit() && !next.any() {
		k.whole(n, false)

		return
	}
	if n.isUnit() || among(k.updates, n.Holders) {
		k.taken[n.id] = true
	}
	for _, c := range n.Children {
		k.taken[c.id] = c.Live && c.isKey()
		k.needed(c, previous.child(c.Element), next.child(c.Element))
	}
}

// among reports whether one of the entries is marked.
func among(marked []bool, entries []int) bool {
	return slices.ContainsFunc(entries, func(i int) bool { return marked[i] })
}

// allowed is false for ghosts and for fields that are never moved. For the latter it adds a note if
// they have an owner.
func (k *taker) allowed(n *Node) bool {
	if !n.Live {
		return false
	}
	if !n.isDenied() {
		return true
	}
	if len(n.Owners) > 0 {
		k.note(Note{Reason: NeverMoved, Fields: fieldpath.NewSet(n.Path())})
	}

	return false
}
