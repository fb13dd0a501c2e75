package ownership

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/engine/fields"
)

// An Undone is what came of an undoing.
type Undone struct {
	// Skipped is Absent or Done, "" if ownership was put back.
	Skipped Reason
	// Moves are what went back, and Notes why something did not.
	Moves []fields.Move
	Notes []fields.Note
	// Object is what it became or would become, nil if nothing was written.
	Object *unstructured.Unstructured
}

// Undo restores what a migration moved, as far as it has not changed since. It may be called again:
// what is restored already is not written.
//
// The error is a *[RefusedError] if it makes no sense to try again.
func (m *Migrator) Undo(ctx context.Context, record Record) (Undone, error) {
	return m.putBack(ctx, record, func(*unstructured.Unstructured) bool { return false })
}

// putBack is Undo, unless the object turns out to be one for which it is wrong. It does not matter
// whether a write with a lost response was done: it is retried, and if it was done, there is
// nothing left to do.
func (m *Migrator) putBack(ctx context.Context, record Record, wrong func(*unstructured.Unstructured) bool) (Undone, error) {
	var result Undone
	again := func(err error) bool {
		return isConflict(err) || ctx.Err() == nil && ReasonOf(err) == "" && !isAnswer(err)
	}
	err := m.race(ctx, again, func() error {
		var err error
		result, err = m.undo(ctx, record, wrong)

		return err
	})

	return result, err
}

func (m *Migrator) undo(ctx context.Context, record Record, wrong func(*unstructured.Unstructured) bool) (Undone, error) {
	live, err := m.read(ctx, record.object())
	switch {
	case err != nil:
		return Undone{}, err
	case live == nil:
		return Undone{Skipped: Absent}, nil
	case live.GetUID() != record.UID:
		return Undone{}, refuse(Replaced, "%s is not the object that the record is about: its uid is %s, not %s", describe(live), live.GetUID(), record.UID)
	case wrong(live):
		return Undone{Skipped: Done, Object: live}, nil
	}
	entries, err := fields.Read(live.Object)
	if err != nil {
		return Undone{}, refuse(Defective, "cannot read the managed fields of %s: %w", describe(live), err)
	}
	p, err := fields.Undo(live.Object, entries, record.Fields)
	if err != nil {
		return Undone{}, refuse(Defective, "cannot undo the migration of %s: %w", describe(live), err)
	}
	result := Undone{Moves: p.Moves, Notes: p.Notes}
	if !p.Changed() {
		result.Skipped = Done

		return result, nil
	}
	written, _, err := m.write(ctx, live, p.Entries, func() error { return nil })
	result.Object = written

	return result, err
}
