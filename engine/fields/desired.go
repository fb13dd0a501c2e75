package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Desired returns the set that applying the object would own, as far as entries reveal it without a
// schema: the keys of a list are taken from entries that name its items, or items of the same list
// elsewhere in the object. A list that no entry names is atomic. A key that the object omits is
// copied from the matching live item.
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
	// live is the live node at the path, or nil.
	live *Node
}

// add inserts the paths of the value and of everything below it into the set.
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

// find returns the live child with that path element, or nil. The receiver may be nil.
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

// complete adds the keys that an element lacks, if exactly one live item matches the keys that it
// has. The receiver may be nil.
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

// hasKeys reports whether the node's path element has all keys of pe, with the same values.
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
