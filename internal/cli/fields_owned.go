package cli

import (
	"encoding/json"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// An owned is an object with who owns what of it.
type owned struct {
	ObjectRef

	live map[string]any
	// entries are as the object has them; those of the tree are merged.
	entries fields.Entries
	tree    *fields.Tree
	// managers and labels are those of the tree's entries.
	managers fields.Entries
	labels   []string
}

// newOwned reads an object. The error is about entries that cannot be used; the
// others are.
func newOwned(obj map[string]any) (*owned, error) {
	entries, err := fields.Read(obj)
	o := &owned{ObjectRef: refOf(obj), live: obj, entries: entries, tree: fields.New(obj, entries)}
	o.managers = o.tree.Entries()
	o.labels = labelEntries(o.managers)

	return o, err
}

// labelEntries gives every entry the shortest name that no other has.
func labelEntries(all fields.Entries) []string {
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

// has says whether a manager has an entry.
func (o *owned) has(manager string) bool {
	return slices.ContainsFunc(o.managers, func(e fields.Entry) bool { return e.Manager == manager })
}

// isOf says whether a manager holds something of a node. Of what is not in the
// object, only the entries tell.
func (o *owned) isOf(n *fields.Node, manager string) bool {
	is := func(i int) bool { return o.managers[i].Manager == manager }
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

// value is what a node has, if there is nothing below it that is held for
// itself. Of secrets it is not shown.
func (o *owned) value(n *fields.Node) (value any, ok bool) {
	if !n.Live || n.Element.Value != nil || hasLiveChildren(n) {
		return nil, false
	}

	if o.isSecret(n) {
		return "(not shown)", true
	}

	return n.Value(), true
}

func hasLiveChildren(n *fields.Node) bool {
	return slices.ContainsFunc(n.Children, func(c *fields.Node) bool { return c.Live })
}

// secrets are the parts of a Secret with what is secret in them. The annotation
// is where kubectl apply keeps a copy of everything.
var secrets = []fields.Scope{
	fields.MustParseScope("data"),
	fields.MustParseScope("stringData"),
	fields.MustParseScope(`metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`),
}

func (o *owned) isSecret(n *fields.Node) bool {
	if o.Kind != "Secret" || o.APIVersion != "v1" {
		return false
	}

	path := n.Path()

	return slices.ContainsFunc(secrets, func(s fields.Scope) bool { return s.Matches(path) })
}

// valueText is a value in one line. A text that could be taken for something
// else is quoted.
func valueText(v any) string {
	if text, ok := v.(string); ok && text != "" && !json.Valid([]byte(text)) {
		return clean(text)
	}

	data, err := json.Marshal(v)
	if err != nil {
		return "(cannot be shown)"
	}

	return clean(string(data))
}

// shorten leaves as much of a text as there is room for.
func shorten(text string, room int, more string) string {
	all := []rune(text)
	if len(all) <= room {
		return text
	}

	return string(all[:max(0, room-len([]rune(more)))]) + more
}

// stepText is the last step of a path: the name of a field, or what an item is
// known by.
func stepText(pe fieldpath.PathElement) string {
	if pe.FieldName != nil {
		return clean(*pe.FieldName)
	}

	return clean(fields.FormatPath(fieldpath.Path{pe}))
}
