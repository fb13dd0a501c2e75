package fields

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Fate is what becomes of something that an apply no longer names.
type Fate string

const (
	// Removed : it goes, with all that is in it.
	Removed Fate = "Removed"
	// Partial : some of the item goes and the rest stays, because others hold
	// what the item is known by, or because the applier does not hold the item
	// itself. If something that goes is required, the server refuses the whole
	// apply (422, "Required value"); if even the key goes, it fails (500); and
	// otherwise the rest stays for ever. Sets do not tell what is required.
	Partial Fate = "Partial"
	// Kept : it stays as it is, and the server says nothing.
	Kept Fate = "Kept"
	// Swept : it goes although the applier never named it. Nobody owns it, and
	// what it is in goes.
	Swept Fate = "Swept"
)

// A Removal is one thing that an apply no longer names (an item of a list, a
// value of a set, a key of a map, or a field) and what becomes of it.
type Removal struct {
	Path fieldpath.Path
	Fate Fate
	// Goes and Stays are what becomes of the parts, for Partial. They are nil
	// for the other fates.
	Goes, Stays *fieldpath.Set
	// Because of whom it stays, for Partial and Kept. It is empty if the applier
	// does not hold it, and nobody else does.
	Because []Holder
}

// A Holder is an entry and what it holds of something.
type Holder struct {
	Identity

	Fields *fieldpath.Set
}

func (r Removal) String() string {
	text := fmt.Sprintf("%s: %s", FormatPath(r.Path), r.Fate)
	if r.Fate == Partial {
		text += " without " + strings.Join(FormatPaths(r.Goes), ", ")
	}
	if len(r.Because) == 0 {
		return text
	}
	names := make([]string, len(r.Because))
	for i, h := range r.Because {
		names[i] = h.String()
	}

	return text + ", because of " + strings.Join(names, " and ")
}

// Removals says what becomes of everything that a manager's next apply no
// longer names. Before, it named what its Apply entry holds, and what is in
// previous, which may be nil: it matters where the manager has lost what it
// once applied. The order is that of the tree.
//
// The prediction is what the server does, with three limits. Maps of objects
// look like structs, so that an object in a map may go as a whole where only a
// part of it is said to. With several keys, an item may go where it is said to
// stay, if somebody holds it without a key that has no default. And entries in
// other versions are read as if they were in the object's.
func (t *Tree) Removals(manager string, previous, next *fieldpath.Set) []Removal {
	me := t.entries.find(Identity{Manager: manager, Operation: Apply})
	last, kept := &fieldpath.Set{}, &fieldpath.Set{}
	for i, e := range t.entries {
		if i == me {
			last = e.Fields
		} else {
			kept = kept.Union(e.Fields)
		}
	}
	if next != nil {
		kept = kept.Union(next)
	}
	r := &remover{tree: t, me: me, gone: t.prune(last, kept)}
	r.visit(t.root, cursorOf(previous), cursorOf(next))

	return r.found
}

type remover struct {
	tree *Tree
	// me is the applier's entry, -1 if it has none.
	me    int
	gone  []bool
	found []Removal
}

// visit goes down to the first things that were named before and are not named
// next.
func (r *remover) visit(n *Node, previous, next cursor) {
	switch {
	case !n.Live:
	case r.gone[n.id] && !r.named(n, previous):
		r.found = append(r.found, Removal{Path: n.Path(), Fate: Swept})
	case next.any() || !r.named(n, previous) || !r.isOne(n, previous):
		for _, c := range n.Children {
			r.visit(c, previous.child(c.Element), next.child(c.Element))
		}
	case r.gone[n.id]:
		r.found = append(r.found, Removal{Path: n.Path(), Fate: Removed})
	case n.isUnit():
		r.found = append(r.found, r.stays(n))
	}
}

// named says whether the applier named the node or something live below it.
func (r *remover) named(n *Node, previous cursor) bool { return previous.any() || r.mine(n) }

// mine says whether the applier holds the node or something live below it.
func (r *remover) mine(n *Node) bool { return slices.Contains(n.Owners, r.me) }

// isOne says whether something that is no longer named is one thing: a unit, or
// a field that was named without what is below it. Others are as many things as
// there are below.
func (r *remover) isOne(n *Node, previous cursor) bool {
	below := previous.below() || slices.ContainsFunc(n.Children, func(c *Node) bool { return c.Live && r.mine(c) })

	return n.parent != nil && (n.isUnit() || !below)
}

// stays is about something that does not go as a whole.
func (r *remover) stays(n *Node) Removal {
	result := Removal{Path: n.Path(), Fate: Kept, Because: r.because(n)}
	goes, stays := &fieldpath.Set{}, &fieldpath.Set{}
	for part := range n.All() {
		switch {
		case !part.Live:
		case !r.gone[part.id]:
			if part == n || !part.hasLive() {
				stays.Insert(part.Path())
			}
		case !r.gone[part.parent.id]:
			goes.Insert(part.Path())
		}
	}
	if !goes.Empty() {
		result.Fate, result.Goes, result.Stays = Partial, goes, stays
	}

	return result
}

// because are those who hold the item itself or what it is known by; if there
// are none, those who hold anything of it.
func (r *remover) because(n *Node) []Holder {
	var decisive []int
	for _, part := range slices.Concat([]*Node{n}, n.Children) {
		if part == n || part.isKey() {
			decisive = append(decisive, part.Holders...)
		}
	}
	others := func(i int) bool { return i == r.me }
	if decisive = slices.DeleteFunc(decisive, others); len(decisive) == 0 {
		decisive = slices.DeleteFunc(slices.Clone(n.Owners), others)
	}
	slices.Sort(decisive)
	all := make([]Holder, 0, len(decisive))
	for _, i := range slices.Compact(decisive) {
		all = append(all, Holder{Identity: r.tree.entries[i].Identity(), Fields: n.heldBy(i)})
	}

	return all
}

// heldBy is what an entry holds live at and below a node.
func (n *Node) heldBy(entry int) *fieldpath.Set {
	set := &fieldpath.Set{}
	for part := range n.All() {
		if part.Live && slices.Contains(part.Holders, entry) {
			set.Insert(part.Path())
		}
	}

	return set
}
