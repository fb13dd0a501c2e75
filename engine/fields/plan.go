package fields

import (
	"encoding/json"
	"errors"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Mode says how much of a scope is moved.
type Mode string

const (
	// Needed : the items and fields that the applier names, named before, or has
	// a part of. What only others ever named stays theirs. It is the default.
	//
	// An item that the applier no longer names is moved with all that is in it,
	// so that it can go as a whole. Of an item that it still names, it gets the
	// item itself and the fields that it names: the rest would be removed by its
	// next apply, and nobody asked for that.
	Needed Mode = "Needed"
	// Whole : everything in the scope, from all managers. What the applier does
	// not name is then removed by its next apply.
	Whole Mode = "Whole"
)

// An Effect is what a plan does with fields.
type Effect string

const (
	// Transfer : others lose them and the applier gains them, so that an apply
	// without them removes them. It is the default.
	Transfer Effect = "Transfer"
	// Release : others lose them, and the applier has what it had. Fields that
	// it does not hold are then nobody's.
	Release Effect = "Release"
)

// A Request says what is to be moved to whom.
type Request struct {
	Scope Scope
	// To is the manager that is to have it, as one who applies.
	To string
	// Mode is Needed if it is empty, and Effect is Transfer.
	Mode   Mode
	Effect Effect
	// Previous and Next are what the manager applied before and will apply. Each
	// may be nil: what the manager holds now counts as applied before.
	Previous, Next *fieldpath.Set
	// Known is any other set that tells how the object's fields are held, such as
	// that of the object by its schema. It may be nil; see [New].
	Known *fieldpath.Set
	// Retag lets entries in other versions take part as if they were in the
	// object's. Only whoever knows that their paths mean the same in both can
	// say so.
	Retag bool
	// Time of the manager's entry, if it gets one that it did not have.
	Time string
}

// A Plan is what the entries of an object are to become, and why. It is not
// carried out by anybody yet.
type Plan struct {
	// Before are the entries that the plan was made for, merged.
	Before Entries
	// Entries are what is to be written. They are never empty if there was one
	// before, since an empty list has the server forget everything.
	Entries Entries
	// Moves are sorted by where they come from.
	Moves []Move
	// Notes are what a person should know: why more, less or nothing is moved.
	Notes []Note

	// to is whom the plan is for, and version the version of its entry.
	to      Identity
	version string
}

// ErrNoVersion says that the live object has no apiVersion, so that nothing
// tells which entries are about what it has. ErrNoManager says that there is
// nobody to move anything to.
var (
	ErrNoVersion = errors.New("cannot plan: the object has no apiVersion")
	ErrNoManager = errors.New("cannot plan: the manager has no name")
)

// NewPlan plans a move. The live object is as it came from JSON.
//
// Only fields that are in the live object are moved, only between entries in
// its version (but see [Request.Retag]), and never those of a subresource or
// those of a [Denied] part. An item is moved without its siblings.
//
// What nobody holds stays nobody's, with two exceptions. Something that the
// manager no longer names, and that it named before or has a part of, becomes
// its own, since it could not remove it otherwise. And if the object has no
// entries at all, the manager gets the first, with what it names.
//
// The error is a *[Denied], a [Defects] about the entries, [ErrNoVersion] or
// [ErrNoManager].
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

// Changed says whether there is anything to write. A plan that was carried out
// leaves nothing to do for the next one.
func (p *Plan) Changed() bool { return !Equal(p.Before, p.Entries) }

// A Move is that fields go from one entry to another.
type Move struct {
	// From is nobody, the zero Identity, for fields that nobody held.
	From Identity
	// To is nobody for fields that are released.
	To     Identity
	Fields *fieldpath.Set
}

// encodedMove is a move in JSON.
type encodedMove struct {
	From   *Identity       `json:"from,omitempty"`
	To     *Identity       `json:"to,omitempty"`
	Fields json.RawMessage `json:"fieldsV1"`
}

// MarshalJSON writes the fields as entries have them.
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
