package fields

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Fate is what an apply does with something that it no longer names.
type Fate string

const (
	// Removed means that the server removes it, with everything in it.
	Removed Fate = "Removed"
	// Partial means that the server removes some of the item and keeps the rest, because other
	// managers hold the item's key, or because the applier does not hold the item itself. If a
	// removed field is required, the server rejects the whole apply (422, "Required value"); if
	// even the key is removed, the apply fails (500); otherwise the rest stays forever. Sets do not
	// reveal which fields are required.
	Partial Fate = "Partial"
	// Kept means that it stays as it is, and the server reports nothing.
	Kept Fate = "Kept"
	// Swept means that the server removes it although the applier never named it: it has no owner,
	// and is inside of something that is removed.
	Swept Fate = "Swept"
)

// A Removal is one item of a list, value of a set, key of a map, or field that an apply no longer
// names, and its fate.
type Removal struct {
	Path fieldpath.Path
	Fate Fate
	// Removed are the removed fields and Stays the kept ones, for Partial. They are nil for the other
	// fates.
	Removed, Stays *fieldpath.Set
	// Because are the entries for which it stays, for Partial and Kept. It is empty if it has no
	// owner at all.
	Because []Holder
}

// A Holder is an entry and the fields that it holds.
type Holder struct {
	Identity

	Fields *fieldpath.Set
}

func (r Removal) String() string {
	text := fmt.Sprintf("%s: %s", FormatPath(r.Path), r.Fate)
	if r.Fate == Partial {
		text += " without " + strings.Join(FormatPaths(r.Removed), ", ")
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

// Removals predicts the fate of everything that a manager's next apply no longer names. Before, it
// named what its Apply entry holds, and what is in previous, which may be nil: it matters where the
// manager has lost fields that it once applied. The order is that of the tree.
//
// The prediction is what the server does, with three limits. Maps of objects look like structs, so
// that the server may remove an object in a map as a whole where the prediction is Partial. With
// several keys, the server may remove an item that is predicted to stay, if a manager holds it
// without a key that has no default. And entries in other versions are read as if they were in the
// object's.
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
	// me is the index of the applier's entry, -1 if it has none.
	me    int
	gone  []bool
	found []Removal
}

// visit descends to the topmost nodes that were named before and are not named next.
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

// named reports whether the applier named the node or something live below it.
func (r *remover) named(n *Node, previous cursor) bool { return previous.any() || r.mine(n) }

// mine reports whether the applier holds the node or something live below it.
func (r *remover) mine(n *Node) bool { return slices.Contains(n.Owners, r.me) }

// isOne reports whether a node that is no longer named is one removal: a unit, or a field that was
// named without anything below it. Any other node has a removal for each node below it.
func (r *remover) isOne(n *Node, previous cursor) bool {
	below := previous.below() || slices.ContainsFunc(n.Children, func(c *Node) bool { return c.Live && r.mine(c) })

	return n.parent != nil && (n.isUnit() || !below)
}

// stays returns the removal of a node that is not removed as a whole.
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
		result.Fate, result.Removed, result.Stays = Partial, goes, stays
	}

	return result
}

// because returns the entries that hold the item itself or its key; if there are none, those that
// hold anything of it.
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

// heldBy returns the live paths that an entry holds at and below a node.
func (n *Node) heldBy(entry int) *fieldpath.Set {
	set := &fieldpath.Set{}
	for part := range n.All() {
		if part.Live && slices.Contains(part.Holders, entry) {
			set.Insert(part.Path())
		}
	}

	return set
}
