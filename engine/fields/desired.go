package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Desired is the set that an object has as something to apply, as far as it can
// be told without a schema: lists are known by what entries say of them, or of
// the same list in another item. A list that no entry says anything about is
// taken as one, and a key that is left out in the object is looked up in the
// live one.
func (t *Tree) Desired(object any) *fieldpath.Set {
	set := &fieldpath.Set{}
	if top, ok := object.(map[string]any); ok {
		wish{value: top, shape: t.shape, live: t.root}.add(set)
	}

	return set
}

// A wish is one value of an object to apply.
type wish struct {
	value any
	path  fieldpath.Path
	shape *shape
	// live is the node of the path, nil if there is none.
	live *Node
}

// add puts the value and what is below it into the set.
func (w wish) add(set *fieldpath.Set) {
	isItem := len(w.path) > 0 && w.path[len(w.path)-1].FieldName == nil
	kind := w.shape.kind(w.value)
	if isItem || kind != Struct && kind != Items {
		set.Insert(w.path)
	}
	switch v := w.value.(type) {
	case map[string]any:
		if kind == Struct {
			w.fields(set, v)
		}
	case []any:
		if kind == Items {
			w.items(set, v)
		}
	}
}

func (w wish) fields(set *fieldpath.Set, v map[string]any) {
	top, meta := len(w.path) == 0, len(w.path) == 1 && w.path[0].Equals(fieldpath.FieldNameElement("metadata"))
	for name, child := range v {
		if !isIdentifying(name, top, meta) {
			w.below(fieldpath.FieldNameElement(name), child).add(set)
		}
	}
}

func (w wish) items(set *fieldpath.Set, v []any) {
	for i, item := range v {
		pe := w.shape.element(i, item)
		if pe.Key != nil && len(*pe.Key) < len(w.shape.keys) {
			pe = w.live.complete(pe)
		}
		w.below(pe, item).add(set)
	}
}

func (w wish) below(pe fieldpath.PathElement, v any) wish {
	return wish{value: v, path: append(slices.Clip(w.path), pe), shape: w.shape.child(pe), live: w.live.find(pe)}
}

// find returns the live child of that name, or nil. It may be called on nil.
func (n *Node) find(pe fieldpath.PathElement) *Node {
	if n == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(n.Children, pe, func(c *Node, pe fieldpath.PathElement) int {
		return c.Element.Compare(pe)
	})
	if !found || !n.Children[i].Live {
		return nil
	}

	return n.Children[i]
}

// complete adds keys that an element does not have, if exactly one live item
// has all that it does have. It may be called on nil.
func (n *Node) complete(pe fieldpath.PathElement) fieldpath.PathElement {
	if n == nil || n.find(pe) != nil {
		return pe
	}
	var matches []*Node
	for _, c := range n.Children {
		if c.Live && c.Element.Key != nil && c.hasKeys(pe) {
			matches = append(matches, c)
		}
	}
	if len(matches) != 1 {
		return pe
	}

	return matches[0].Element
}

// hasKeys says whether the node is known by all keys of an element.
func (n *Node) hasKeys(pe fieldpath.PathElement) bool {
	for _, f := range *pe.Key {
		one := fieldpath.KeyElement(f)
		found := false
		for _, own := range *n.Element.Key {
			found = found || fieldpath.KeyElement(own).Equals(one)
		}
		if !found {
			return false
		}
	}

	return true
}
