package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type planner struct {
	Plan

	request Request
	tree    *Tree
	// own is the index of the applier's entry, -1 if there is none.
	own int
	// taken are the nodes to move, in the order of the tree.
	taken []*Node
	// units are those of them that can be removed alone: items, and fields outside of removed
	// items.
	units []*Node
	// gained is what the applier gets.
	gained *fieldpath.Set
}

func (p *planner) note(n Note) { p.Notes = append(p.Notes, n) }

// move takes from each entry the fields that it holds of the taken nodes.
func (p *planner) move() {
	p.gained = &fieldpath.Set{}
	if len(p.Before) == 0 {
		p.adopt()

		return
	}
	to := p.to
	if p.request.Effect == Release {
		to = Identity{}
	}
	for i, e := range p.Before {
		if i == p.own {
			continue
		}
		fields := heldOf(p.taken, i)
		if fields.Empty() || p.skip(e, fields) {
			continue
		}
		p.Moves = append(p.Moves, Move{From: e.Identity(), To: to, Fields: fields})
		p.Entries[i].Fields = e.Fields.Difference(fields)
		if p.request.Effect != Release {
			p.gained = p.gained.Union(fields)
		}
	}
	if found := p.orphans(); p.request.Effect != Release && !found.Empty() {
		p.Moves = append(p.Moves, Move{To: to, Fields: found})
		p.gained = p.gained.Union(found)
	}
	slices.SortFunc(p.Moves, func(a, b Move) int { return a.From.Compare(b.From) })
}

// skip reports whether an entry is not changed, and adds a note.
func (p *planner) skip(e Entry, fields *fieldpath.Set) bool {
	switch {
	case e.Subresource != "":
		p.note(Note{Reason: Subresource, Entry: e.Identity(), Fields: fields})

		return true
	case e.APIVersion == p.version:
		return false
	case p.request.Retag:
		p.note(Note{Reason: Retagged, Entry: e.Identity(), Version: e.APIVersion, Fields: fields})

		return false
	default:
		p.note(Note{Reason: OtherVersion, Entry: e.Identity(), Version: e.APIVersion, Fields: fields})

		return true
	}
}

// orphans returns units without an owner that the applier must be able to remove: items of which it
// gets a field, and fields that it named before. Without the item itself it could only remove the
// fields.
func (p *planner) orphans() *fieldpath.Set {
	set := &fieldpath.Set{}
	previous, next := cursorOf(p.request.Previous), cursorOf(p.request.Next)
	for _, n := range p.units {
		if len(n.Holders) > 0 || next.at(n).any() {
			continue
		}
		part := n.isItem() && slices.ContainsFunc(n.Owners, func(i int) bool {
			return i == p.own || p.Before[i].Subresource == "" && (p.Before[i].APIVersion == p.version || p.request.Retag)
		})
		if part || previous.at(n).member {
			set.Insert(n.Path())
		}
	}

	return set
}

// adopt makes the first entry of an object without entries. A field with other fields below it is
// held through those, not by its own path.
func (p *planner) adopt() {
	for _, n := range p.taken {
		if n.isUnit() {
			p.gained.Insert(n.Path())
		}
		if n.Kind == Opaque {
			p.note(Note{Reason: KeysUnknown, Fields: fieldpath.NewSet(n.Path())})
		}
	}
	if p.request.Effect == Release {
		p.gained = &fieldpath.Set{}
	}
	if !p.gained.Empty() {
		p.note(Note{Reason: Untracked, Fields: p.gained})
		p.Moves = []Move{{To: p.to, Fields: p.gained}}
	}
}

// finish adds the gained fields to the applier's entry, and drops empty entries.
func (p *planner) finish() {
	switch {
	case p.own < 0 && !p.gained.Empty():
		p.Entries = append(p.Entries, Entry{
			Manager: p.request.To, Operation: Apply, APIVersion: p.version, Time: p.request.Time, Fields: p.gained,
		})
	case p.own >= 0:
		own := &p.Entries[p.own]
		if own.APIVersion != p.version {
			p.retag(own)
		}
		own.Fields = own.Fields.Union(p.gained)
	}
	p.Entries = p.Entries.Merge()
	if len(p.Entries) == 0 && len(p.Before) > 0 {
		p.Entries, p.Moves = p.Before, nil
		p.note(Note{Reason: WouldBeEmpty})
	}
}

// retag reads the applier's own entry in the version of the object. It drops paths that the object
// does not have in this version, because they cannot be checked.
func (p *planner) retag(own *Entry) {
	there := p.tree.root.heldBy(p.own)
	p.note(Note{Reason: Retagged, Entry: p.to, Version: own.APIVersion, Fields: own.Fields.Difference(there)})
	own.Fields, own.APIVersion = there, p.version
}

// heldOf returns the paths that an entry holds of some nodes.
func heldOf(nodes []*Node, entry int) *fieldpath.Set {
	set := &fieldpath.Set{}
	for _, n := range nodes {
		if slices.Contains(n.Holders, entry) {
			set.Insert(n.Path())
		}
	}

	return set
}
