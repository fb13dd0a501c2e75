package fields

import (
	"encoding/json"
	"errors"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Mode is how much of a scope is moved.
type Mode string

const (
	// Needed moves the items and fields that the applier names, named before, or partly owns. Those
	// that only other managers ever named stay with them. It is the default.
	//
	// An item that the applier no longer names is moved with everything in it, so that it can be
	// removed as a whole. Of an item that it still names, the applier gets the item itself and the
	// fields that it names: its next apply would remove the rest, which was not requested.
	Needed Mode = "Needed"
	// Whole moves everything in the scope, from all managers. The applier's next apply removes what
	// it does not name.
	Whole Mode = "Whole"
)

// An Effect is what a plan does with fields.
type Effect string

const (
	// Transfer moves the fields from other managers to the applier, so that an apply without them
	// removes them. It is the default.
	Transfer Effect = "Transfer"
	// Release takes the fields from other managers and leaves the applier's as they were. Fields
	// that it does not hold have no owner then.
	Release Effect = "Release"
)

// A Request describes which fields are moved, and to which manager.
type Request struct {
	Scope Scope
	// To is the manager that gets the fields, in its Apply entry.
	To string
	// Mode is Needed if it is empty, and Effect is Transfer.
	Mode   Mode
	Effect Effect
	// Previous and Next are what the manager applied before and will apply. Each may be nil: what
	// the manager holds now counts as applied before.
	Previous, Next *fieldpath.Set
	// Known is any other set that reveals how the object's fields are held, such as that of the
	// object by its schema. It may be nil; see [New].
	Known *fieldpath.Set
	// Retag reads entries in other versions as if they were in the object's. The caller must know
	// that their paths mean the same in both.
	Retag bool
	// Time of the manager's entry, if the plan creates it.
	Time string
}

// A Plan describes the new entries of an object, and why. Making a plan writes nothing.
type Plan struct {
	// Before are the entries that the plan was made for, merged.
	Before Entries
	// Entries are the entries to write. They are never empty if there was one before: with an empty
	// list the server drops all ownership.
	Entries Entries
	// Moves are sorted by From.
	Moves []Move
	// Notes explain to a person why more, less or nothing is moved.
	Notes []Note

	// to is the manager that the plan is for, and version the version of its entry.
	to      Identity
	version string
}

// ErrNoVersion means that the live object has no apiVersion, so that it is unknown which entries
// refer to its fields. ErrNoManager means that the request names no manager.
var (
	ErrNoVersion = errors.New("cannot plan: the object has no apiVersion")
	ErrNoManager = errors.New("cannot plan: the manager has no name")
)

// NewPlan plans a move. The live object is decoded JSON.
//
// A plan moves only fields that are in the live object, only between entries in its version (but
// see [Request.Retag]), and never those of a subresource or those that are [Denied]. An item is
// moved without its siblings.
//
// A field without an owner gets none, with two exceptions. If the manager no longer names it, and
// named it before or owns a part of it, the manager becomes the owner, because it could not remove
// the field otherwise. And if the object has no entries at all, the manager gets the first, with
// the fields that it names.
//
// The error is a *[Denied], a [Defects] about the entries, [ErrNoVersion] or [ErrNoManager].
func NewPlan(live any, entries Entries, r Request) (*Plan, error) {
	if r.To == "" {
		return nil, ErrNoManager
	}
	if err := r.Scope.Check(); err != nil {
		return nil, err
	}
	merged := entries.Merge()
	if err := merged.Check(); err != nil {
		return nil, err
	}
	t := New(live, merged, r.Previous, r.Next, r.Known)
	if t.version == "" {
		return nil, ErrNoVersion
	}
	p := &planner{
		Plan:    Plan{Before: merged, Entries: slices.Clone(merged), to: Identity{Manager: r.To, Operation: Apply}, version: t.version},
		request: r, tree: t,
	}
	p.own = merged.find(p.to)
	if p.own >= 0 && merged[p.own].APIVersion != t.version && !r.Retag {
		p.note(Note{Reason: OtherVersion, Entry: p.to, Version: merged[p.own].APIVersion})
		p.version = merged[p.own].APIVersion

		return new(p.Plan), nil
	}
	p.taken = p.take()
	p.move()
	p.finish()

	return new(p.Plan), nil
}

// Changed reports whether there is anything to write. It is false for a second plan with the same
// request.
func (p *Plan) Changed() bool { return !Equal(p.Before, p.Entries) }

// A Move moves fields from one entry to another.
type Move struct {
	// From is the zero Identity for fields that had no owner.
	From Identity
	// To is the zero Identity for fields that are released.
	To     Identity
	Fields *fieldpath.Set
}

// encodedMove is the JSON of a move.
type encodedMove struct {
	From   *Identity       `json:"from,omitempty"`
	To     *Identity       `json:"to,omitempty"`
	Fields json.RawMessage `json:"fieldsV1"`
}

// MarshalJSON writes the fields in the format of entries.
func (m Move) MarshalJSON() ([]byte, error) {
	set, err := Entry{Fields: m.Fields}.fields().ToJSON()
	if err != nil {
		return nil, err
	}
	out := encodedMove{Fields: set}
	if m.From != (Identity{}) {
		out.From = &m.From
	}
	if m.To != (Identity{}) {
		out.To = &m.To
	}

	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Move) UnmarshalJSON(data []byte) error {
	var in encodedMove
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	set, err := ParseFields(in.Fields)
	if err != nil {
		return err
	}
	*m = Move{Fields: set}
	if in.From != nil {
		m.From = *in.From
	}
	if in.To != nil {
		m.To = *in.To
	}

	return nil
}
