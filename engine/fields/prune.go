package fields

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// A cursor is a place in a set.
type cursor struct {
	// member says that the set holds the place itself.
	member bool
	// set is what it holds below, nil if nothing.
	set *fieldpath.Set
}

func cursorOf(set *fieldpath.Set) cursor {
	if set == nil {
		return cursor{}
	}

	return cursor{set: set}
}

func (c cursor) child(pe fieldpath.PathElement) cursor {
	if c.set == nil {
		return cursor{}
	}
	below, _ := c.set.Children.Get(pe)

	return cursor{member: c.set.Members.Has(pe), set: below}
}

// at goes down to a node from the root.
func (c cursor) at(n *Node) cursor {
	if n.parent == nil {
		return c
	}

	return c.at(n.parent).child(n.Element)
}

func (c cursor) below() bool { return c.set != nil && !c.set.Empty() }

// any says whether the set holds the place or something below.
func (c cursor) any() bool { return c.member || c.below() }

// holds says whether the set holds a node in the sense of the server: a field
// with something below is held by whoever holds something of that. Items of
// lists are not.
func (c cursor) holds(n *Node) bool {
	return c.member || n.Element.FieldName != nil && c.below()
}

// pruner finds out what an apply removes from an object. It does what the
// server does, with names in place of a schema:
//
//  1. Of all that the applier held before (last), and what is below that, only
//     what somebody holds after the apply (kept) comes through.
//  2. An item without what it is known by does not count as come through.
//  3. Of what did not come through, only that which the applier held before
//     goes, each with everything below. The rest was not its to remove.
type pruner struct {
	// gone is true for nodes that go, by their id.
	gone []bool
}

// prune returns which nodes of the tree go, by their id, when a manager that
// held last applies, and all others together with what it applies hold kept.
// Everybody applies a name, so metadata itself never goes.
func (t *Tree) prune(last, kept *fieldpath.Set) []bool {
	p := &pruner{gone: make([]bool, t.count)}
	kept = kept.Union(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "name")))
	for _, n := range t.root.Children {
		p.visit(n, cursorOf(last).child(n.Element), cursorOf(kept).child(n.Element), place{})
	}

	return p.gone
}

// A place is what is known of a node from those above it.
type place struct {
	// covered : the applier held it, or something above.
	covered bool
	// lost : it did not come through, or something above did not.
	lost bool
	// gone : something above it goes.
	gone bool
}

func (p *pruner) visit(n *Node, last, kept cursor, at place) {
	if !n.Live {
		return
	}
	held := last.holds(n)
	at.covered = at.covered || held
	at.lost = at.lost || at.covered && (!kept.holds(n) || !isKnown(n, kept))
	at.gone = at.gone || at.lost && held
	p.gone[n.id] = at.gone
	for _, c := range n.Children {
		p.visit(c, last.child(c.Element), kept.child(c.Element), at)
	}
}

// isKnown says whether an item that comes through still has what it is known
// by. If there are several keys, all but one may have defaults, which nobody
// holds; so one that is held is enough. What is held as a whole comes through
// as a whole.
func isKnown(n *Node, kept cursor) bool {
	if n.Element.Key == nil || n.Kind == Atomic {
		return true
	}
	for _, f := range *n.Element.Key {
		if kept.child(fieldpath.FieldNameElement(f.Name)).any() {
			return true
		}
	}

	return false
}
