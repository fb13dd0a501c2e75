package fields

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// A cursor is a position in a set.
type cursor struct {
	// member reports whether the set holds the position itself.
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

// at moves the cursor from the root to a node.
func (c cursor) at(n *Node) cursor {
	if n.parent == nil {
		return c
	}

	return c.at(n.parent).child(n.Element)
}

func (c cursor) below() bool { return c.set != nil && !c.set.Empty() }

// any reports whether the set holds the position or something below it.
func (c cursor) any() bool { return c.member || c.below() }

// holds reports whether the set holds a node as the server sees it: the owner of a field also owns
// the structs around it. Items of lists are different.
func (c cursor) holds(n *Node) bool {
	return c.member || n.Element.FieldName != nil && c.below()
}

// pruner finds out what an apply removes from an object. It does what the server does, with names
// instead of a schema:
//
//  1. Of all that the applier held before (last), and what is below that, only
//     fields that some manager holds after the apply (kept) survive.
//  2. An item without its key does not count as surviving.
//  3. Of the fields that did not survive, only those that the applier held
//     before are removed, each with everything below it.
type pruner struct {
	// gone is true for removed nodes, by their id.
	gone []bool
}

// prune returns which nodes of the tree are removed, by their id, when a manager that held last
// applies, and kept is what all other managers hold together with what it applies. Every apply
// contains a name, so metadata itself is never removed.
func (t *Tree) prune(last, kept *fieldpath.Set) []bool {
	p := &pruner{gone: make([]bool, t.count)}
	kept = kept.Union(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "name")))
	for _, n := range t.root.Children {
		p.visit(n, cursorOf(last).child(n.Element), cursorOf(kept).child(n.Element), place{})
	}

	return p.gone
}

// A place is what the nodes above a node determine about it.
type place struct {
	// covered means that the applier held it, or something above it.
	covered bool
	// lost means that it did not survive, or something above it did not.
	lost bool
	// gone means that something above it is removed.
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

// isKnown reports whether a surviving item still has its key. If it has several keys, all but one
// may have defaults, which have no owner; so one that is held is enough. An atomic item survives as
// a whole.
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
