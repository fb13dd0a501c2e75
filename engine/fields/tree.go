package fields

import (
	"iter"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Kind says how what is below a field is known.
type Kind string

const (
	// Leaf : there is nothing below.
	Leaf Kind = "Leaf"
	// Atomic : there is something below, but it is held as one with the field.
	Atomic Kind = "Atomic"
	// Struct : fields below are known by name.
	Struct Kind = "Struct"
	// Items : it is a list, and its items are known by keys or by value.
	Items Kind = "Items"
	// Opaque : it is a list of which no entry names anything, so that nothing
	// tells what its items are known by.
	Opaque Kind = "Opaque"
)

// A State sums up who owns a field and everything below it.
type State string

const (
	// Unowned : nobody does.
	Unowned State = "Unowned"
	// Sole : all of it is owned by one entry and no other.
	Sole State = "Sole"
	// CoOwned : all of it is owned by the same two entries or more.
	CoOwned State = "CoOwned"
	// Split : one part of it is owned by others than another part.
	Split State = "Split"
)

// A Tree is the fields of a live object and of its entries. It does not change,
// so any number of goroutines may read it. It shares memory with what it was
// made of, which must not change either.
//
// What identifies an object or is the server's (apiVersion, kind,
// metadata.name, …) is in no entry and not in the tree.
type Tree struct {
	// version is the apiVersion that the object was read in.
	version string
	entries Entries
	shape   *shape
	root    *Node
	count   int
}

// A Node is a field, an item of a list, or the object itself.
type Node struct {
	// Element is the last step of the node's path; it is empty for the root.
	Element fieldpath.PathElement
	Kind    Kind
	// Live says that it is in the object. What is not, a ghost, is only in
	// entries.
	Live bool
	// Holders are the entries, as indexes in [Tree.Entries], that hold the node
	// itself: the path, which is written as "." if there is more below.
	Holders []int
	// Owners are the entries that hold the node or something live below it.
	Owners []int
	State  State
	// Children are in the order of sets: fields by name, then items.
	Children []*Node

	parent *Node
	value  any
	// id counts nodes from 0, parents before children.
	id int
}

// New makes the tree of an object as it came from JSON. Entries are merged
// first.
//
// How fields are held is told by the entries alone. Where they do not tell, more
// sets can: of a list that nobody has anything of, what its items are known by
// ([Opaque]), and of a map that somebody holds and of which nobody holds
// anything below, that it is not [Atomic].
func New(live any, entries Entries, more ...*fieldpath.Set) *Tree {
	t := &Tree{entries: entries.Merge(), shape: newShape()}
	if object, ok := live.(map[string]any); ok {
		t.version, _ = object["apiVersion"].(string)
	}
	for _, e := range t.entries {
		t.shape.learn(e.Fields)
	}
	for _, set := range more {
		if set != nil {
			t.shape.learn(set)
		}
	}
	t.build(live)

	return t
}

// Entries are the entries that nodes refer to, merged.
func (t *Tree) Entries() Entries { return slices.Clone(t.entries) }

// Root is the object itself.
func (t *Tree) Root() *Node { return t.root }

// Identities are those of the entries that a node refers to.
func (t *Tree) Identities(indexes []int) []Identity {
	all := make([]Identity, len(indexes))
	for i, at := range indexes {
		all[i] = t.entries[at].Identity()
	}

	return all
}

// Path leads from the root to the node.
func (n *Node) Path() fieldpath.Path {
	var p fieldpath.Path
	for at := n; at.parent != nil; at = at.parent {
		p = append(p, at.Element)
	}
	slices.Reverse(p)

	return p
}

// Value is what the object has there, nil if it has nothing. It is shared with
// the object, and nobody writes to it.
func (n *Node) Value() any { return n.value }

// All yields the node and everything below, parents first.
func (n *Node) All() iter.Seq[*Node] {
	return func(yield func(*Node) bool) { n.walk(yield) }
}

func (n *Node) walk(yield func(*Node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, c := range n.Children {
		if !c.walk(yield) {
			return false
		}
	}

	return true
}

// is says whether the node is at that path of field names.
func (n *Node) is(names ...string) bool {
	for i := len(names) - 1; i >= 0; i, n = i-1, n.parent {
		if n.Element.FieldName == nil || *n.Element.FieldName != names[i] {
			return false
		}
	}

	return n.parent == nil
}

// isDenied is true at the top of what is never moved.
func (n *Node) isDenied() bool {
	return slices.ContainsFunc(denied, func(names []string) bool { return n.is(names...) })
}

// isItem is true for items of lists, which come and go as a whole.
func (n *Node) isItem() bool { return n.parent != nil && n.Element.FieldName == nil }

// isKey says whether an item's child is what the item is known by.
func (n *Node) isKey() bool {
	if n.Element.FieldName == nil || n.parent.Element.Key == nil {
		return false
	}
	for _, f := range *n.parent.Element.Key {
		if f.Name == *n.Element.FieldName {
			return true
		}
	}

	return false
}

// isUnit is true for what comes and goes as one: items, and fields with nothing
// below.
func (n *Node) isUnit() bool { return n.isItem() || !n.hasLive() }

// hasLive says whether there is anything in the object below.
func (n *Node) hasLive() bool {
	return slices.ContainsFunc(n.Children, func(c *Node) bool { return c.Live })
}
