package ownership

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// settling checks what an apply made of an object, or would make of it.
type settling struct {
	*Plan

	manager string
	// is has the fields of what it became, and at finds them by path.
	is *fields.Tree
	at map[string]*fields.Node
}

// settle reads what an object became.
func settle(p *Plan, manager string, o *unstructured.Unstructured) (*settling, error) {
	entries, err := fields.Read(o.Object)
	if err != nil {
		return nil, refuse(Unsettled, "cannot read what the managed fields of %s became: %w", describe(o), err)
	}
	is := fields.New(o.Object, entries, p.shapes()...)

	return &settling{Plan: p, manager: manager, is: is, at: index(is)}, nil
}

// done returns why an apply has not done, or would not do, what it should: a field was not removed,
// the manager does not own what it applied, or another manager has lost something.
func (s *settling) done() error {
	return cmp.Or(s.gone(), s.owned(), s.kept(false, s.after))
}

// gone returns the fields that the plan removes and that still exist. A field without an owner does
// not count: the server sets its default, or derives it from other fields. There are no defaults
// for one item of a list.
func (s *settling) gone() error {
	removals := s.Then
	if s.Skip != "" {
		removals = s.Now
	}
	for _, r := range removals {
		if r.Fate != fields.Removed {
			continue
		}
		isField := r.Path[len(r.Path)-1].FieldName != nil
		for _, n := range s.find(s.is, r.Path) {
			if isField && len(n.Owners) == 0 {
				continue
			}

			return refuse(Unsettled, "%s of %s should be gone and is there: %s", fields.FormatPath(r.Path), describe(s.Live), s.whose(n.Owners))
		}
	}

	return nil
}

// owned returns what the manager applied and does not own. Where what it applies is known only by
// the sets of other entries, nothing is returned.
func (s *settling) owned() error {
	if !s.said {
		return nil
	}
	var missing error
	s.next.Difference(ownOf(s.is.Entries(), s.manager)).Iterate(func(path fieldpath.Path) {
		owners := "it is not there"
		if n := s.at[path.String()]; n != nil {
			owners = s.whose(n.Owners)
		}
		missing = cmp.Or(missing, refuse(Unsettled, "%s applied %s of %s and does not own it: %s", s.manager, fields.FormatPath(path), describe(s.Live), owners))
	})

	return missing
}

// kept returns what other managers hold and the apply does not name, and what has changed
// nevertheless, and is not as in one of the objects that result from the apply in any case: this is
// about the effect of the migration. Each of them may be nil.
//
// Only with values does it matter that something has another value with the same owner. The server
// derives some fields from other fields, such as the generation of the template of a DaemonSet.
func (s *settling) kept(values bool, anyway ...*unstructured.Unstructured) error {
	was := fields.New(s.Live.Object, s.Entries, s.shapes()...)
	var usual []*settling
	for _, o := range anyway {
		if o == nil {
			continue
		}
		if u, err := settle(s.Plan, s.manager, o); err == nil {
			usual = append(usual, u)
		}
	}
	for _, n := range outside(was.Root(), s.next, s.going(was)) {
		at := n.Path().String()
		what := s.differs(was, n, values)
		fine := func(u *settling) bool { return u.at[at] != nil && s.differs(u.is, u.at[at], values) == "" }
		if what != "" && !slices.ContainsFunc(usual, fine) {
			return refuse(Unsettled, "%s of %s %s, which was not requested", fields.FormatPath(n.Path()), describe(s.Live), what)
		}
	}

	return nil
}

// going are the paths that go by the apply, also those out of scope: it is the
// manager's whole wish.
func (s *settling) going(was *fields.Tree) map[string]bool {
	paths := map[string]bool{}
	for _, r := range was.Removals(s.manager, s.previous, s.next) {
		switch {
		case r.Fate == fields.Removed || r.Fate == fields.Swept:
			paths[r.Path.String()] = true
		case r.Removed != nil:
			r.Removed.Iterate(func(path fieldpath.Path) { paths[path.String()] = true })
		}
	}

	return paths
}

// differs describes how a field has changed, as far as other managers are concerned.
func (s *settling) differs(was *fields.Tree, before *fields.Node, values bool) string {
	after := s.at[before.Path().String()]
	held := slices.DeleteFunc(was.Identities(before.Holders), func(id fields.Identity) bool { return id == s.me() })
	switch {
	case len(held) == 0:
		return ""
	case after == nil:
		return fmt.Sprintf("is gone, which %s held", held[0])
	case values && !reflect.DeepEqual(before.Value(), after.Value()):
		return fmt.Sprintf("has changed, which %s holds", held[0])
	}
	for _, id := range held {
		if !slices.Contains(s.is.Identities(after.Holders), id) {
			return fmt.Sprintf("is no longer held by %s", id)
		}
	}

	return ""
}

func (s *settling) me() fields.Identity {
	return fields.Identity{Manager: s.manager, Operation: fields.Apply}
}

// whose names the entries that hold something.
func (s *settling) whose(entries []int) string {
	if len(entries) == 0 {
		return "nobody holds it, so admission or a default puts it there"
	}
	var names []string
	for _, id := range s.is.Identities(entries) {
		names = append(names, id.String())
	}

	return "held by " + strings.Join(names, " and ")
}

// index finds live nodes by their path. The tree may be nil.
func index(tree *fields.Tree) map[string]*fields.Node {
	all := map[string]*fields.Node{}
	if tree == nil {
		return all
	}
	for n := range tree.Root().All() {
		if n.Live {
			all[n.Path().String()] = n
		}
	}

	return all
}

// outside are the live fields with nothing below that an apply does not name, and that are in
// nothing that is removed.
func outside(n *fields.Node, next *fieldpath.Set, gone map[string]bool) []*fields.Node {
	var found []*fields.Node
	leaf := true
	for _, c := range n.Children {
		if !c.Live {
			continue
		}
		leaf = false
		if gone[c.Path().String()] {
			continue
		}
		below := outside(c, next.WithPrefix(c.Element), gone)
		if len(below) == 1 && below[0] == c && next.Members.Has(c.Element) {
			continue
		}
		found = append(found, below...)
	}
	if leaf && next.Empty() {
		return []*fields.Node{n}
	}

	return found
}
