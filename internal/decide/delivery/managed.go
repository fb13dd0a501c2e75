package delivery

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
)

// managed reports whether we have applied what is at the path of a live object, or something in it.
// Where a path leads to several places, one is enough.
func (p path) managed(live *unstructured.Unstructured, manager string) bool {
	if live == nil {
		return false
	}
	entries, err := fields.Read(live.Object)
	if err != nil {
		return false // the server would not read them either
	}
	t := fields.New(live.Object, entries)

	return slices.ContainsFunc(p.find(t.Root()), func(n *fields.Node) bool {
		return slices.ContainsFunc(t.Identities(n.Owners), func(id fields.Identity) bool {
			return id.Manager == manager && id.Operation == fields.Apply && id.Subresource == ""
		})
	})
}

// find returns the nodes that the path leads to. What is held as a whole stands for
// all that is in it.
func (p path) find(n *fields.Node) []*fields.Node {
	if !n.Live {
		return nil
	}
	if len(p) == 0 || n.Kind == fields.Atomic {
		return []*fields.Node{n}
	}
	var all []*fields.Node
	for _, c := range n.Children {
		if p[0].leads(n, c) {
			all = append(all, p[1:].find(c)...)
		}
	}

	return all
}

// leads reports whether a step leads from a node to one of its children.
func (s step) leads(from, to *fields.Node) bool {
	switch list, _ := from.Value().([]any); {
	case s.kind == byName:
		return to.Element.FieldName != nil && *to.Element.FieldName == s.name
	case list == nil:
		return false
	case s.kind == byPosition:
		// Nodes are not in the order of the list, but no two of its items are equal:
		// they have keys.
		return s.position < len(list) && reflect.DeepEqual(list[s.position], to.Value())
	}

	return s.matches(to.Value())
}
