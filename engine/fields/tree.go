package fields

import (
	"iter"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Kind is how the fields below a field are identified.
type Kind string

const (
	// Leaf has nothing below it.
	Leaf Kind = "Leaf"
	// Atomic has something below it that is held as one with the field.
	Atomic Kind = "Atomic"
	// Struct has fields that are identified by name.
	Struct Kind = "Struct"
	// Items is a list whose items are identified by keys or by value.
	Items Kind = "Items"
	// Opaque is a list of which no entry names an item, so that its keys are unknown.
	Opaque Kind = "Opaque"
)

// A State summarizes the owners of a field and of everything below it.
type State string

const (
	// Unowned means that it has no owner.
	Unowned State = "Unowned"
	// Sole means that one entry owns all of it, and no other owns any.
	Sole State = "Sole"
	// CoOwned means that the same two or more entries own all of it.
	CoOwned State = "CoOwned"
	// Split means that different entries own different fields of it.
	Split State = "Split"
)

// A Tree is the fields of a live object and of its entries. It does not change, so any number of
// goroutines may read it. It shares memory with its inputs, which must not change either.
//
// Fields that identify an object or belong to the server (apiVersion, kind, metadata.name, …) are
// in no entry and not in the tree.
type Tree struct {
	// version is the apiVersion of the live object.
	version string
	entries Entries
	shape   *shape
	root    *Node
	count   int
}

// A Node is a field, an item of a list, or the object itself.
type Node struct {
	// Element is the last element of the node's path; it is empty for the root.
	Element fieldpath.PathElement
	Kind    Kind
	// Live reports whether it is in the object. A node that is only in entries is called a ghost.
	Live bool
	// Holders are the entries, as indexes in [Tree.Entries], that hold the node itself: the path,
	// which is written as "." if there is more below.
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

// New makes the tree of an object that is decoded JSON. It merges the entries first.
//
// The entries determine the kinds of fields. More sets can add to that: the keys of a list of which
// no entry holds anything ([Opaque]), and that a map is not [Atomic] although only its own path has
// an owner.
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

// Entries returns the merged entries that nodes refer to.
func (t *Tree) Entries() Entries { return slices.Clone(t.entries) }

// Root returns the object itself.
func (t *Tree) Root() *Node { return t.root }

// Identities returns the identities of entries, given their indexes.
func (t *Tree) Identities(indexes []int) []Identity {
	all := make([]Identity, len(indexes))
	for i, at := range indexes {
		all[i] = t.entries[at].Identity()
	}

	return all
}

// Path returns the path from the root to the node.
func (n *Node) Path() fieldpath.Path {
	var p fieldpath.Path
	for at := n; at.parent != nil; at = at.parent {
		p = append(p, at.Element)
	}
	slices.Reverse(p)

	return p
}

// Value returns the value in the object, or nil. It is shared with the object and must not be
// modified.
func (n *Node) Value() any { return n.value }

// All yields the node and everything below it, parents first.
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

// is reports whether the node is at that path of field names.
func (n *Node) is(names ...string) bool {
	for i := len(names) - 1; i >= 0; i, n = i-1, n.parent {
		if n.Element.FieldName == nil || *n.Element.FieldName != names[i] {
			return false
		}
	}

	return n.parent == nil
}

// isDenied is true for the topmost fields that are never moved.
func (n *Node) isDenied() bool {
	return slices.ContainsFunc(denied, func(names []string) bool { return n.is(names...) })
}

// isItem is true for items of lists, which are created and removed as a whole.
func (n *Node) isItem() bool { return n.parent != nil && n.Element.FieldName == nil }

// isKey reports whether the node is a key of the item that it belongs to.
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

// isUnit is true for nodes that are created and removed as one: items, and fields with nothing
// below.
func (n *Node) isUnit() bool { return n.isItem() || !n.hasLive() }

// hasLive reports whether the object has anything below the node.
func (n *Node) hasLive() bool {
	return slices.ContainsFunc(n.Children, func(c *Node) bool { return c.Live })
}
