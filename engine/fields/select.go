package fields

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// A Selection is the result of a scope in an object.
type Selection struct {
	// Nodes are live, and none is below another.
	Nodes []*Node
	// Lifted are those of Nodes to which the scope was widened: they are [Atomic], and the scope is
	// inside of them.
	Lifted []*Node
	// Opaque are lists that contain the scope and whose keys are unknown. They have no owner.
	Opaque []*Node
}

// Exists reports whether the scope is in the object.
func (s Selection) Exists() bool { return len(s.Nodes)+len(s.Opaque) > 0 }

// Select finds a scope in the object.
func (t *Tree) Select(s Scope) Selection {
	var found Selection
	search(&found, t.root, s.steps)

	return found
}

func search(found *Selection, n *Node, steps []step) {
	switch {
	case !n.Live:
	case len(steps) == 0:
		found.Nodes = append(found.Nodes, n)
	case n.Kind == Atomic:
		if isBelow(n.value, steps) {
			found.Nodes = append(found.Nodes, n)
			found.Lifted = append(found.Lifted, n)
		}
	case n.Kind == Opaque:
		if isBelow(n.value, steps) {
			found.Opaque = append(found.Opaque, n)
		}
	default:
		for _, c := range n.Children {
			if steps[0].matches(c.Element) {
				search(found, c, steps[1:])
			}
		}
	}
}

// isBelow reports whether the steps match something in a value, with any field of a list item, or
// the item itself, as its key.
func isBelow(v any, steps []step) bool {
	if len(steps) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if steps[0].matches(fieldpath.FieldNameElement(name)) && isBelow(child, steps[1:]) {
				return true
			}
		}
	case []any:
		for i, item := range v {
			if steps[0].matches(anyElement(i, item)) && isBelow(item, steps[1:]) {
				return true
			}
		}
	}

	return false
}

// anyElement returns the path element of an item as if all of its scalar fields were keys.
func anyElement(index int, item any) fieldpath.PathElement {
	s := &shape{values: true}
	if object, ok := item.(map[string]any); ok {
		for name, v := range object {
			switch v.(type) {
			case map[string]any, []any:
			default:
				s.keys = append(s.keys, name)
			}
		}
	}

	return s.element(index, item)
}
