package owners

import (
	"slices"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
)

// An Object is an object with who owns what of it.
type Object struct {
	identity.Ref

	live map[string]any
	// Entries are as the object has them; those of the tree are merged.
	Entries fields.Entries
	Tree    *fields.Tree
	// Managers and labels are those of the tree's entries.
	Managers fields.Entries
	Labels   []string
}

// New reads an object. The error is about entries that cannot be used; the
// others are.
func New(obj map[string]any) (*Object, error) {
	entries, err := fields.Read(obj)
	o := &Object{Ref: identity.RefOf(obj), live: obj, Entries: entries, Tree: fields.New(obj, entries)}
	o.Managers = o.Tree.Entries()
	o.Labels = LabelEntries(o.Managers)

	return o, err
}

// LabelEntries gives every entry the shortest name that no other has.
func LabelEntries(all fields.Entries) []string {
	forms := []func(fields.Entry) string{
		managerName,
		func(e fields.Entry) string { return managerName(e) + " (" + string(e.Operation) + ")" },
		func(e fields.Entry) string { return e.Identity().String() },
	}
	out := make([]string, len(all))

	for i, e := range all {
		for _, form := range forms {
			out[i] = form(e)
			if !slices.ContainsFunc(all[:i], func(x fields.Entry) bool { return form(x) == out[i] }) &&
				!slices.ContainsFunc(all[i+1:], func(x fields.Entry) bool { return form(x) == out[i] }) {
				break
			}
		}
	}

	return out
}

// managerName shows that something was written through a subresource.
func managerName(e fields.Entry) string {
	name := e.Manager
	if name == "" {
		name = "(no name)"
	}

	if e.Subresource != "" {
		name += "/" + e.Subresource
	}

	return name
}

// Has says whether a manager has an entry.
func (o *Object) Has(manager string) bool {
	return slices.ContainsFunc(o.Managers, func(e fields.Entry) bool { return e.Manager == manager })
}

// IsOf says whether a manager holds something of a node. Of what is not in the
// object, only the entries tell.
func (o *Object) IsOf(n *fields.Node, manager string) bool {
	is := func(i int) bool { return o.Managers[i].Manager == manager }
	if n.Live {
		return slices.ContainsFunc(n.Owners, is)
	}

	for part := range n.All() {
		if slices.ContainsFunc(part.Holders, is) {
			return true
		}
	}

	return false
}

// Value is what a node has, if there is nothing below it that is held for
// itself. Of secrets it is not shown.
func (o *Object) Value(n *fields.Node) (value any, ok bool) {
	if !n.Live || n.Element.Value != nil || HasLiveChildren(n) {
		return nil, false
	}

	if o.isSecret(n) {
		return "(not shown)", true
	}

	return n.Value(), true
}

// HasLiveChildren reports whether the object has anything below a node.
func HasLiveChildren(n *fields.Node) bool {
	return slices.ContainsFunc(n.Children, func(c *fields.Node) bool { return c.Live })
}

// secrets are the parts of a Secret with what is secret in them. The annotation
// is where kubectl apply keeps a copy of everything.
var secrets = []fields.Scope{
	fields.MustParseScope("data"),
	fields.MustParseScope("stringData"),
	fields.MustParseScope(`metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`),
}

func (o *Object) isSecret(n *fields.Node) bool {
	if o.Kind != "Secret" || o.APIVersion != "v1" {
		return false
	}

	path := n.Path()

	return slices.ContainsFunc(secrets, func(s fields.Scope) bool { return s.Matches(path) })
}

// Names are those of entries.
func (o *Object) Names(entries []int) []string {
	out := make([]string, len(entries))
	for i, at := range entries {
		out[i] = o.Labels[at]
	}

	return out
}
