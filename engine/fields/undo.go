package fields

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Record has what is needed to undo a plan. It can be stored as JSON.
type Record struct {
	// To is the manager that gained fields, and APIVersion the version of its entry after that.
	To         Identity `json:"to"`
	APIVersion string   `json:"apiVersion"`
	Moves      []Move   `json:"moves"`
	// Before are the entries before the plan.
	Before Entries `json:"before"`
}

// Record returns the record of a plan by [NewPlan].
func (p *Plan) Record() Record {
	return Record{To: p.to, APIVersion: p.version, Moves: slices.Clone(p.Moves), Before: slices.Clone(p.Before)}
}

// Undo plans to reverse the moves of a plan, given the object as it is now.
//
// Each manager gets the fields back that the plan took from it, and the manager that gained them
// loses those that it did not have before. Later changes stay: a field that a third manager
// acquired since then stays with it, and a field that was removed gets no owner. Notes list both.
// Entries in a version other than that of the record are not changed.
//
// The error is a [Defects] about the entries.
func Undo(live any, entries Entries, r Record) (*Plan, error) {
	merged := entries.Merge()
	if err := merged.Check(); err != nil {
		return nil, err
	}
	known := make([]*fieldpath.Set, 0, len(r.Before)+len(r.Moves))
	for _, e := range r.Before {
		known = append(known, e.Fields)
	}
	for _, m := range r.Moves {
		known = append(known, m.Fields)
	}
	u := &undoer{
		Plan:   Plan{Before: merged, Entries: slices.Clone(merged), to: r.To, version: r.APIVersion},
		record: r, tree: New(live, merged, known...), lost: &fieldpath.Set{},
	}
	for _, m := range r.Moves {
		u.putBack(m)
	}
	u.lose()
	u.Entries = u.Entries.Merge()
	if len(u.Entries) == 0 && len(merged) > 0 {
		u.Entries, u.Moves = merged, nil
		u.Notes = append(u.Notes, Note{Reason: WouldBeEmpty})
	}

	return new(u.Plan), nil
}

type undoer struct {
	Plan

	record Record
	tree   *Tree
	// lost are the fields that the gaining manager loses again.
	lost *fieldpath.Set
}

// putBack returns the fields of a move to the entry that they came from.
func (u *undoer) putBack(m Move) {
	if m.From == (Identity{}) {
		u.lost = u.lost.Union(m.Fields)

		return
	}
	back := u.entry(m.From)
	if at := u.Entries.find(m.From); at >= 0 && u.Entries[at].APIVersion != back.APIVersion {
		u.Notes = append(u.Notes, Note{Reason: OtherVersion, Entry: m.From, Version: u.Entries[at].APIVersion, Fields: m.Fields})

		return
	}
	u.lost = u.lost.Union(m.Fields)
	gone, given := &fieldpath.Set{}, &fieldpath.Set{}
	taken := map[int]*fieldpath.Set{}
	m.Fields.Iterate(func(path fieldpath.Path) {
		n := u.tree.at(path)
		if n == nil {
			gone.Insert(path)

			return
		}
		if by := u.newHolder(n, path, m.From); by >= 0 {
			if taken[by] == nil {
				taken[by] = &fieldpath.Set{}
			}
			taken[by].Insert(path)
		} else {
			given.Insert(path)
		}
	})
	u.report(m.From, gone, taken)
	if given.Empty() {
		return
	}
	u.Moves = append(u.Moves, Move{From: m.To, To: m.From, Fields: given})
	back.Fields = given
	u.Entries = append(u.Entries, back)
}

// entry returns the former entry of an identity, without fields.
func (u *undoer) entry(id Identity) Entry {
	e := Entry{Manager: id.Manager, Operation: id.Operation, Subresource: id.Subresource, APIVersion: id.APIVersion}
	if i := u.record.Before.find(id); i >= 0 {
		e.APIVersion, e.Time = u.record.Before[i].APIVersion, u.record.Before[i].Time
	}

	return e
}

// newHolder returns an entry that holds a node and did not when the record was made, or -1. It
// skips the manager that gained the fields and the one that gets them back.
func (u *undoer) newHolder(n *Node, path fieldpath.Path, from Identity) int {
	for _, i := range n.Holders {
		id := u.Before[i].Identity()
		if id == from || id == u.record.To {
			continue
		}
		if before := u.record.Before.find(id); before < 0 || !u.record.Before[before].fields().Has(path) {
			return i
		}
	}

	return -1
}

func (u *undoer) report(to Identity, gone *fieldpath.Set, taken map[int]*fieldpath.Set) {
	if !gone.Empty() {
		u.Notes = append(u.Notes, Note{Reason: Gone, Entry: to, Fields: gone})
	}
	for i := range u.Before {
		if taken[i] != nil {
			u.Notes = append(u.Notes, Note{Reason: Taken, Entry: to, By: u.Before[i].Identity(), Fields: taken[i]})
		}
	}
}

// lose takes the gained fields from the manager that did not have them before.
func (u *undoer) lose() {
	at := u.Entries.find(u.record.To)
	if at < 0 {
		return
	}
	own := &u.Entries[at]
	if own.APIVersion != u.record.APIVersion {
		u.Notes = append(u.Notes, Note{Reason: OtherVersion, Entry: u.record.To, Version: own.APIVersion, Fields: u.lost})

		return
	}
	before := Entry{Fields: &fieldpath.Set{}, APIVersion: own.APIVersion}
	if i := u.record.Before.find(u.record.To); i >= 0 {
		before = u.record.Before[i]
	}
	own.Fields = own.Fields.Difference(u.lost.Difference(before.fields()))
	if before.APIVersion == own.APIVersion {
		return
	}
	// The entry was retagged, and paths that the object does not have were dropped. If it has not
	// changed since, restore them.
	there := &fieldpath.Set{}
	before.fields().Iterate(func(path fieldpath.Path) {
		if u.tree.at(path) != nil {
			there.Insert(path)
		}
	})
	if same(own.Fields, there) {
		own.Fields, own.APIVersion = before.Fields, before.APIVersion
	} else {
		u.Notes = append(u.Notes, Note{Reason: Retagged, Entry: u.record.To, Version: before.APIVersion, Fields: own.Fields})
	}
}

// at returns the live node at a path, or nil.
func (t *Tree) at(path fieldpath.Path) *Node {
	n := t.root
	for _, pe := range path {
		n = n.find(pe)
	}

	return n
}
