package owners

import (
	"fmt"
	"slices"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/show"
)

// A Tree is what is shown of an object: some of its fields, with the lines of
// a tree.
type Tree struct {
	*Object
	show.Tree

	Fields []*fields.Node
	// Scoped says that the tops are parts of the object, named by their paths.
	Scoped bool
	Notes  []show.NoteView
}

// NewTree takes the part of an object that is in a scope and that a manager
// has something of, if one is named.
func NewTree(o *Object, within fields.Scope, manager string, scoped bool) *Tree {
	c := &Tree{Object: o, Scoped: scoped}
	tops := o.Tree.Root().Children

	if scoped {
		found := o.Tree.Select(within)
		tops = slices.Concat(found.Nodes, found.Opaque)

		for _, n := range found.Lifted {
			c.warnf("%s can only be held as a whole", fields.FormatPath(n.Path()))
		}

		for _, n := range found.Opaque {
			c.warnf("nobody holds an item of %s, so that nothing tells what the items are known by", fields.FormatPath(n.Path()))
		}
	}

	if len(o.Managers) == 0 {
		c.warnf("it has no managedFields: the server does not know who owns what")
	}

	var up []int

	var add func(n *fields.Node, parent int)

	add = func(n *fields.Node, parent int) {
		if manager != "" && !o.IsOf(n, manager) {
			return
		}

		at := len(c.Fields)
		c.Fields, up = append(c.Fields, n), append(up, parent)

		for _, child := range n.Children {
			add(child, at)
		}
	}

	for _, n := range tops {
		if !isIdentity(n) {
			add(n, show.Top)
		}
	}

	c.Tree = show.NewTree(up)

	return c
}

// isIdentity is true for metadata with nothing in it but what identifies the
// object, which nobody can own.
func isIdentity(n *fields.Node) bool {
	return n.Element.FieldName != nil && *n.Element.FieldName == "metadata" && n.State == fields.Unowned && len(n.Children) == 0 && len(n.Path()) == 1
}

func (c *Tree) warnf(format string, args ...any) {
	c.Notes = append(c.Notes, show.NoteView{Severity: show.SeverityWarning, Message: fmt.Sprintf(format, args...)})
}
