package ownership

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// A Plan is what a migration would do.
type Plan struct {
	// Live is the object as it was read, nil if there is none.
	Live   *unstructured.Unstructured
	Scopes []fields.Scope
	// Status of each scope before anything is done.
	Status []Status
	// Skip is why there is nothing to do, "" if there is. Contested are the
	// managers that have had their rounds.
	Skip      Reason
	Contested []string

	// Before and Entries are the managed fields as they are and as they should be, Moves the
	// difference between them, and Notes are for the user.
	Before, Entries fields.Entries
	Moves           []fields.Move
	Notes           []fields.Note

	// Refused is the error of the server for an apply of the desired state without a migration, nil
	// if there is none.
	Refused error
	// Now and Then are what happens to the fields in the scopes that the next apply no longer
	// names: without the migration, and after it. Without a desired state, the next apply names
	// nothing.
	Now, Then []fields.Removal

	record fields.Record
	// previous and next are what is applied before and after, and known is how the fields of the
	// object are held. Each may be nil. said is whether next comes from the server.
	previous, next, known *fieldpath.Set
	said                  bool
	// after is the object after an apply without a migration, nil if that is rejected or not known.
	after *unstructured.Unstructured
}

// Changed reports whether there is anything to move. It may still be skipped.
func (p *Plan) Changed() bool { return !fields.Equal(p.Before, p.Entries) }

// Plan reads the object and returns what a migration would do. It writes nothing, and counts
// managers as a migration does: the metrics would otherwise miss users that only plan.
func (m *Migrator) Plan(ctx context.Context, r Request) (*Plan, error) {
	p, err := m.plan(ctx, r, false)
	if err == nil {
		m.report(r, p)
	}

	return p, err
}

// plan is Plan, for the entries as they are or as the server reads them.
func (m *Migrator) plan(ctx context.Context, r Request, asRead bool) (*Plan, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	live, err := m.read(ctx, r.which())
	if err != nil {
		return nil, err
	}
	if err := r.checkVersion(live); err != nil {
		return nil, err
	}
	if live == nil {
		return &Plan{Skip: Absent}, nil
	}
	p := &Plan{Live: live}
	if p.Scopes, err = r.scopes(live); err != nil {
		return nil, err
	}
	if p.Before, err = fields.Read(live.Object); err != nil {
		return p, refuse(Defective, "cannot read the managed fields of %s: %w", describe(live), err)
	}
	p.Before = p.Before.Merge()
	if asRead {
		if p.Before, err = m.reconciled(ctx, live, p.Before); err != nil {
			return p, err
		}
	}
	w := &planning{Migrator: m, Plan: p, request: r, mode: cmp.Or(r.Mode, m.mode)}
	if err := w.decide(ctx); err != nil {
		return p, err
	}

	return p, nil
}

// planning is the making of a plan.
type planning struct {
	*Migrator
	*Plan

	request Request
	mode    fields.Mode
	tree    *fields.Tree
	// empties are moved so that nothing is left of them.
	empties []fields.Scope
}

// decide computes the plan, and whether it is needed.
func (w *planning) decide(ctx context.Context) error {
	w.tree = fields.New(w.Live.Object, w.Before)
	for _, s := range w.Scopes {
		w.Status = append(w.Status, statusOf(w.tree, s, w.manager))
	}
	if err := w.rehearse(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(w.Status, func(s Status) bool { return s.ScopeExists }) {
		w.Skip, w.Entries = NoScope, w.Before

		return nil
	}
	if err := w.compute(ctx); err != nil {
		return err
	}
	w.Now = w.removals(w.tree)
	w.Then = w.removals(fields.New(w.Live.Object, w.Entries, w.sets()...))
	w.Contested = w.damper.contested(w.Live.GetUID(), w.Scopes, w.Moves)
	switch {
	case !w.Changed():
		w.Skip = Done
	case !w.needed():
		w.Skip = NotNeeded
	case len(w.Contested) > 0:
		w.Skip = Contested
	}

	return nil
}

// rehearse applies what is desired as a dry run.
func (w *planning) rehearse(ctx context.Context) error {
	if w.request.Desired == nil {
		return nil
	}
	after, err := w.apply(ctx, w.request.Desired, w.manager, client.DryRunAll)
	switch {
	case err == nil:
		w.after, w.next = after, appliedBy(after, w.manager)
	case isRefusedState(err):
		w.Refused = explain(err, "apply "+describe(w.Live))
		// Where nothing has to be removed, the desired state may be fine.
		w.next = w.probe(ctx, w.request.Desired)
	default:
		return explain(err, "apply "+describe(w.Live)+" as a dry run")
	}
	if w.said = w.next != nil; !w.said {
		w.next = w.tree.Desired(w.request.Desired.Object)
	}

	return nil
}

// compute plans the move of each scope, one after the other.
func (w *planning) compute(ctx context.Context) error {
	if len(w.Before) == 0 {
		return w.adopt(ctx)
	}
	if err := w.move(); err != nil {
		return err
	}
	unknown := func(n fields.Note) bool { return n.Reason == fields.KeysUnknown }
	if w.known != nil || !slices.ContainsFunc(w.Notes, unknown) {
		return nil
	}
	if w.known = w.probeLive(ctx, w.Live); w.known == nil {
		return nil
	}

	return w.move()
}

// adopt is for an object without entries. Fields that the manager does not get are assigned to the
// manager that the server would assign them to on a first apply: without an owner, they would be
// removed as soon as the manager drops its last field next to them.
func (w *planning) adopt(ctx context.Context) error {
	if w.known = w.probeLive(ctx, w.Live); w.known == nil {
		return refuse(Untracked, "%s has no managed fields, and the server does not return what they would be", describe(w.Live))
	}
	if err := w.move(); err != nil {
		return err
	}
	if len(w.Entries) == 0 {
		return nil
	}
	own := w.Entries[0]
	own.Fields = own.Fields.Intersection(w.known)
	rest := fields.Entry{Manager: fields.BeforeFirstApply, Operation: fields.Update, APIVersion: own.APIVersion, Time: own.Time, Fields: w.known.Difference(own.Fields)}
	w.Entries = fields.Entries{own, rest}.Merge()

	return nil
}

func (w *planning) move() error {
	w.tree = fields.New(w.Live.Object, w.Before, w.sets()...)
	if p := w.request.Previous; p != nil {
		w.previous = w.tree.Desired(p.Object)
	}
	w.Entries, w.Moves, w.Notes, w.record = w.Before, nil, nil, fields.Record{}
	for _, s := range w.Scopes {
		if err := w.add(s, w.mode); err != nil {
			return err
		}
	}
	w.empties = w.emptied()
	for _, s := range w.empties {
		if err := w.add(s, fields.Whole); err != nil {
			return err
		}
	}

	return nil
}

// add plans the move of one scope on top of what is planned already.
func (w *planning) add(s fields.Scope, mode fields.Mode) error {
	p, err := fields.NewPlan(w.Live.Object, w.Entries, fields.Request{
		Scope: s, To: w.manager, Mode: mode, Previous: w.previous, Next: w.next, Known: w.known,
		Retag: w.request.Retag, Time: w.now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		return err
	}
	record := p.Record()
	if w.record.To == (fields.Identity{}) {
		w.record = record
	} else {
		w.record.Moves, w.record.APIVersion = append(w.record.Moves, record.Moves...), record.APIVersion
	}
	w.Entries, w.Moves, w.Notes = p.Entries, append(w.Moves, p.Moves...), append(w.Notes, p.Notes...)

	return nil
}

// emptied are the lists and maps in scope of which the apply removes everything. If another manager
// holds them, they would be left as null, which the schema of a custom resource rejects.
func (w *planning) emptied() []fields.Scope {
	if w.request.Desired == nil || len(w.Before) == 0 {
		return nil
	}
	tree := fields.New(w.Live.Object, w.Entries, w.sets()...)
	gone := map[string]bool{}
	for _, r := range w.removals(tree) {
		gone[r.Path.String()] = r.Fate == fields.Removed
	}
	var all []fields.Scope
	for n := range tree.Root().All() {
		in := func(s fields.Scope) bool { return s.Matches(n.Path()) }
		if !isEmptied(n, gone) || !slices.ContainsFunc(w.Scopes, in) {
			continue
		}
		if s, err := fields.ParseScope(fields.FormatPath(n.Path())); err == nil {
			all = append(all, s)
		}
	}

	return all
}

// isEmptied reports whether a held field has something in it, and all of that is removed.
func isEmptied(n *fields.Node, gone map[string]bool) bool {
	return (n.Kind == fields.Items || n.Kind == fields.Struct) && len(n.Holders) > 0 && vanishes(n, gone)
}

// vanishes reports whether something below is removed, and nothing is left. Items are removed
// themselves, or they stay.
func vanishes(n *fields.Node, gone map[string]bool) bool {
	went := false
	for _, c := range n.Children {
		if !c.Live {
			continue
		}
		if !gone[c.Path().String()] && (c.Element.FieldName == nil || !vanishes(c, gone)) {
			return false
		}
		went = true
	}

	return went
}
