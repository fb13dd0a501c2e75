package ownership

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// sets are all that tells how fields are held, besides the entries.
func (p *Plan) sets() []*fieldpath.Set { return []*fieldpath.Set{p.previous, p.next, p.known} }

// removals are those that have to do with the scopes.
func (w *planning) removals(tree *fields.Tree) []fields.Removal {
	lifted := map[string]bool{}
	for _, s := range w.Scopes {
		for _, path := range tree.CheckOwnership(s, w.manager).Lifted {
			lifted[path.String()] = true
		}
	}

	return slices.DeleteFunc(tree.Removals(w.manager, w.previous, w.next), func(r fields.Removal) bool {
		return !lifted[r.Path.String()] && !slices.ContainsFunc(w.Scopes, func(s fields.Scope) bool { return concerns(s, r) })
	})
}

// concerns says whether a removal, or anything because of which it fails, is in
// a scope.
func concerns(s fields.Scope, r fields.Removal) bool {
	in := s.Matches(r.Path)
	for _, h := range r.Because {
		// Sets have an iterator too, which does not stop when it is told to.
		h.Fields.Iterate(func(path fieldpath.Path) { in = in || s.Matches(path) })
	}

	return in
}

// needed says whether the apply of what is desired would not do all it should.
// Who asks for a migration without saying what is desired wants it anyway, as
// does who asks for the whole scope. And an object without entries needs a
// first one, or the server makes one that holds everything.
func (w *planning) needed() bool {
	if w.request.Desired == nil || w.mode == fields.Whole || len(w.Before) == 0 {
		return true
	}

	// What is left as null has it refuse this one.
	if w.Refused != nil && len(w.empties) > 0 {
		return true
	}
	// An entry in a version that lacks a field of the object has the server refuse
	// every apply.
	old := func(e fields.Entry) bool { return e.APIVersion != w.Live.GetAPIVersion() }
	if w.Refused != nil && w.request.Retag && slices.ContainsFunc(w.Before, old) {
		return true
	}

	return slices.ContainsFunc(w.Now, w.isLeft) || slices.ContainsFunc(w.Then, w.isWon)
}

// isLeft says whether something that should go stays.
func (w *planning) isLeft(r fields.Removal) bool {
	return (r.Fate == fields.Kept || r.Fate == fields.Partial) && w.stays(r.Path)
}

// isWon says whether something goes only because of the migration: the manager
// wrote it, but did not apply it.
func (w *planning) isWon(r fields.Removal) bool {
	now := func(n fields.Removal) bool { return n.Fate == fields.Removed && n.Path.Equals(r.Path) }

	return r.Fate == fields.Removed && !slices.ContainsFunc(w.Now, now) && w.stays(r.Path)
}

// stays says whether an apply leaves a path as things are, as far as is known.
func (w *planning) stays(path fieldpath.Path) bool {
	return w.after == nil || len(w.find(fields.New(w.after.Object, nil, w.shapes()...), path)) > 0
}

// shapes are all that tells how fields are held, with the entries.
func (p *Plan) shapes() []*fieldpath.Set {
	all := p.sets()
	for _, e := range p.Before {
		all = append(all, e.Fields)
	}

	return all
}

// find returns what another object has at a path of this one.
func (p *Plan) find(tree *fields.Tree, path fieldpath.Path) []*fields.Node {
	s, err := fields.ParseScope(fields.FormatPath(path))
	if err != nil {
		return nil
	}
	found := tree.Select(s)

	return append(found.Nodes, found.Opaque...)
}
