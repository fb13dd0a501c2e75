package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
)

// Defaults of the options.
const (
	defaultAttempts = 5
	defaultRounds   = 3
	defaultMemory   = time.Hour

	// restoreTimeout is how long entries are tried to be put back, also if the
	// caller has given up.
	restoreTimeout = 30 * time.Second
)

// Options of a Migrator. All of them have a default.
type Options struct {
	// Manager is the field manager that fields are moved to. Defaults to eno.
	Manager string
	// Mode is how much of a scope is moved: what is needed.
	Mode fields.Mode
	// MaxAttempts is how often a migration begins again after a lost race: 5.
	MaxAttempts int
	// MaxRounds is how often fields of an object are moved from the same manager
	// before it is left alone: 3. Memory is how long that is remembered: an hour.
	MaxRounds int
	Memory    time.Duration
	// DryRun has the server check every write and keep none. There are no records
	// then, no events, and nothing is counted.
	DryRun bool
	// Now is the clock.
	Now func() time.Time
	// Metrics, Recorder and Journal may be nil.
	Metrics  *Metrics
	Recorder events.EventRecorder
	Journal  Journal
}

// A Migrator moves ownership of fields to one manager. It may be used by any
// number of goroutines.
type Migrator struct {
	client   client.Client
	manager  string
	mode     fields.Mode
	dryRun   bool
	attempts int
	now      func() time.Time
	metrics  *Metrics
	recorder events.EventRecorder
	journal  Journal
	damper   *damper
}

// New makes a Migrator. See the package about the client.
func New(c client.Client, o Options) *Migrator {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.DryRun {
		o.Metrics, o.Recorder, o.Journal = nil, nil, nil
	}

	return &Migrator{
		client: c, manager: cmp.Or(o.Manager, DefaultManager), mode: cmp.Or(o.Mode, fields.Needed), dryRun: o.DryRun, attempts: cmp.Or(o.MaxAttempts, defaultAttempts),
		now: o.Now, metrics: o.Metrics, recorder: o.Recorder, journal: o.Journal,
		damper: &damper{rounds: cmp.Or(o.MaxRounds, defaultRounds), memory: cmp.Or(o.Memory, defaultMemory), now: o.Now, fights: map[fight]round{}},
	}
}

// A Result is what a migration has done.
type Result struct {
	// Migrated is whether ownership was moved, or would be in a dry run. If it was not, Skipped is
	// the reason.
	Migrated bool
	Skipped  Reason
	// Applied is whether the desired state was applied.
	Applied bool
	// Restored is whether ownership was moved and restored, because the apply failed, or would not
	// have done what it should.
	Restored bool
	// Attempts is how often it was begun.
	Attempts int
	// Plan is the last that was made, or the one that was carried out.
	Plan *Plan
	// Records undo the migration, in the order in which they were made. There is more than one only
	// if another writer interfered.
	Records []Record
	// Object is what it became or would become, nil if nothing was written.
	Object *unstructured.Unstructured
}

// MigrateOwnership moves scopes of an object, or the default one of its kind, as
// far as the manager has to do with them.
func (m *Migrator) MigrateOwnership(ctx context.Context, object *unstructured.Unstructured, scopes ...string) (Result, error) {
	r := Request{Object: object}
	for _, text := range scopes {
		s, err := fields.ParseScope(text)
		if err != nil {
			return Result{}, err
		}
		r.Scopes = append(r.Scopes, s)
	}

	return m.Migrate(ctx, r)
}

// Migrate moves ownership as far as it is needed, and then applies what is
// desired. See the package for the order in which it does that.
//
// The error is a *[RefusedError] if a retry is useless, a *[fields.Denied] about the scope, or the
// error of the server. In each case ownership is as it was, unless the error reports that it could
// not be restored, or the result reports that the desired state was applied.
//
// Once it is applied, nothing is restored, even if the object is [Unsettled]. The entry of the
// manager is then what it applied, and that is no longer what was moved: many of these fields have
// been removed, so that they cannot be moved back, and the rest may be what the manager names now,
// which it would lose. The records are in the result, for callers that want to restore it after a
// review of the object.
func (m *Migrator) Migrate(ctx context.Context, r Request) (Result, error) {
	began := m.now()
	w := &run{m: m, request: r}
	err := m.race(ctx, isConflict, func() error { return w.attempt(ctx) })
	if err != nil && len(w.Records) > 0 && !w.Applied {
		err = w.restore(ctx, err)
	}
	w.finish(ctx, err)
	if !IsStale(err) { // the caller begins again
		m.metrics.ended(w.Migrated, err, m.now().Sub(began))
	}

	return w.Result, err
}

// race repeats what lost a race. (The retry of client-go treats the end of a context as its own
// timeout, and returns no error at all.)
func (m *Migrator) race(ctx context.Context, lost func(error) bool, do func() error) error {
	pause := wait.Backoff{Steps: m.attempts, Duration: 5 * time.Millisecond, Factor: 3, Jitter: 1, Cap: time.Second}
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || !lost(err) || attempt >= m.attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pause.Step()):
		}
	}
}

// run is one call of Migrate.
type run struct {
	Result

	m       *Migrator
	request Request
	// asRead is that entries are taken as the server reads them.
	asRead bool
	// would is the object after the apply that follows the last move, by a dry run, and unanswered
	// its plan if it is not known whether it was done.
	would      *unstructured.Unstructured
	unanswered *Plan
}

// attempt does everything, with what is there now.
func (w *run) attempt(ctx context.Context) error {
	w.Attempts++
	p, err := w.m.plan(ctx, w.request, w.asRead)
	if p != nil && (w.Plan == nil || len(w.Records) == 0) {
		w.Plan = p
	}
	if err != nil {
		return err
	}
	if w.Attempts == 1 {
		w.m.report(w.request, p)
	}
	base := p.Live
	if p.Skip == "" {
		base, err = w.rewrite(ctx, p)
	} else {
		err = p.Refused
	}
	switch {
	case ReasonOf(err) == Altered && len(w.Records) == 0 && !w.asRead:
		// It was only tried. The entries may be of another schema.
		w.asRead = true

		return w.attempt(ctx)
	case err != nil:
		return err
	}

	return w.deliver(ctx, p, base)
}

// report counts the other managers.
func (m *Migrator) report(r Request, p *Plan) {
	var names []string
	for _, s := range p.Status {
		for _, name := range s.OtherManagers {
			names = insert(names, name)
		}
	}
	m.metrics.found(r.which().GetKind(), names)
}

// rewrite carries out a plan and returns the object with its new entries.
func (w *run) rewrite(ctx context.Context, p *Plan) (*unstructured.Unstructured, error) {
	record := Record{
		APIVersion: p.Live.GetAPIVersion(), Kind: p.Live.GetKind(), Namespace: p.Live.GetNamespace(), Name: p.Live.GetName(), UID: p.Live.GetUID(),
		Scopes: p.Scopes, Time: metav1.NewTime(w.m.now()), ResourceVersion: p.Live.GetResourceVersion(), Fields: p.record,
	}
	keep := func() error {
		if w.m.journal == nil {
			return nil
		}
		if err := w.m.journal.Keep(ctx, record); err != nil {
			return fmt.Errorf("cannot keep the record of %s, and changed nothing: %w", describe(p.Live), err)
		}

		return nil
	}
	written, sent, err := w.m.write(ctx, p.Live, p.Entries, keep)
	w.Object = written
	if sent {
		w.Records = append(w.Records, record)
		w.m.damper.moved(p.Live.GetUID(), p.Scopes, p.Moves)
	}

	return written, err
}

// write writes entries, first as a dry run, and checks the result. before is called in between.
// sent is whether anything may have been changed. In a dry run, the returned object is as it would
// be.
func (m *Migrator) write(ctx context.Context, live *unstructured.Unstructured, entries fields.Entries, before func() error) (_ *unstructured.Unstructured, sent bool, _ error) {
	doing := "write the managed fields of " + describe(live)
	if err := entries.Check(); err != nil {
		return nil, false, explain(err, doing)
	}
	dry, err := m.send(ctx, live, entries, client.DryRunAll)
	if apierrors.IsInvalid(err) {
		return nil, false, refuse(Rejected, "cannot %s, and changed nothing: %w", doing, err)
	}
	if err != nil {
		return nil, false, explain(err, doing+" as a dry run")
	}
	if err := verify(live, dry, entries); err != nil || m.dryRun {
		return dry, false, err
	}
	if err := before(); err != nil {
		return nil, false, err
	}
	written, err := m.send(ctx, live, entries)
	if err != nil {
		return nil, !isAnswer(err), explain(err, doing)
	}

	return written, true, verify(live, written, entries)
}

// deliver applies the desired state, on condition that no other client wrote in between. If
// anything was moved for it, it is tried first as a dry run: as long as nothing is applied,
// everything can be restored.
func (w *run) deliver(ctx context.Context, p *Plan, base *unstructured.Unstructured) error {
	// In a dry run, what has been moved is not there to apply on.
	if w.request.Desired == nil || w.request.MoveOnly || w.m.dryRun {
		return nil
	}
	o := w.request.Desired.DeepCopy()
	o.SetResourceVersion("")
	if base != nil {
		o.SetResourceVersion(base.GetResourceVersion())
	}
	if p.Skip == "" {
		would, err := w.m.apply(ctx, o, w.m.manager, client.DryRunAll)
		if err == nil {
			err = w.look(p, would)
		}
		if err != nil {
			return explain(err, "apply "+describe(o)+" as a dry run")
		}
		w.would = would
	}
	applied, err := w.m.apply(ctx, o, w.m.manager)
	if err != nil {
		if !isAnswer(err) {
			w.unanswered = p
		}

		return explain(err, "apply "+describe(o))
	}
	w.Applied, w.Object = true, applied

	return w.look(p, applied)
}

// look returns why an object is not what the apply should make of it. If nothing
// was moved for it, it is an apply like any other, which is all about what it
// leaves behind.
func (w *run) look(p *Plan, o *unstructured.Unstructured) error {
	if p.Live == nil {
		return nil
	}
	s, err := settle(p, w.m.manager, o)
	switch {
	case err != nil:
		return err
	case p.Skip != "":
		return s.gone()
	case !w.Applied:
		return s.done()
	}

	return cmp.Or(s.done(), s.kept(true, p.after, w.would))
}

// restore restores what was moved, since the apply that it was moved for has failed. If the
// response of the apply was lost, it may have been done nevertheless; then that is the result.
func (w *run) restore(ctx context.Context, because error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	for _, record := range slices.Backward(w.Records) {
		undone, err := w.m.putBack(ctx, record, w.landed)
		if err != nil {
			return errors.Join(because, fmt.Errorf("cannot put ownership back, which is as it was moved: %w", err))
		}
		if undone.Object != nil {
			w.Object = undone.Object
		}
		if w.Applied {
			return w.look(w.unanswered, w.Object)
		}
	}
	w.Restored = true

	return because
}

// landed reports whether the apply with the lost response was done to an object: the manager has
// what it applies, and had something else when it was moved.
func (w *run) landed(live *unstructured.Unstructured) bool {
	p := w.unanswered
	if p == nil || !p.said || !p.next.Equals(appliedBy(live, w.m.manager)) || p.next.Equals(ownOf(p.Entries, w.m.manager)) {
		return false
	}
	w.Applied = true

	return true
}

// finish reports the result: as an event only if something was done, or cannot be.
func (w *run) finish(ctx context.Context, err error) {
	w.Migrated = !w.Restored && (len(w.Records) > 0 || w.m.dryRun && w.Object != nil && err == nil)
	log := logr.FromContextOrDiscard(ctx).WithValues("object", describe(w.request.which()), "manager", w.m.manager)
	switch {
	case err != nil:
		err = w.request.discreet(err)
		log.V(1).Info("ownership was not migrated", "reason", ReasonOf(err), "restored", w.Restored, "error", err.Error())
		w.event("Warning", "OwnershipNotMigrated", err.Error())
	case w.Migrated:
		log.Info("migrated ownership", "dryRun", w.m.dryRun, "from", sources(w.Plan.Moves), "attempts", w.Attempts)
		w.event("Normal", "OwnershipMigrated", fmt.Sprintf("%s now owns what %v had of %v", w.m.manager, sources(w.Plan.Moves), w.Plan.Scopes))
	default:
		w.Skipped = w.Plan.Skip
		log.V(1).Info("nothing to migrate", "reason", w.Skipped)
		if w.Skipped == Contested {
			w.event("Warning", "OwnershipContested", fmt.Sprintf("%v take back what is moved to %s and are left alone", w.Plan.Contested, w.m.manager))
		}
	}
}

func (w *run) event(kind, reason, message string) {
	if w.m.recorder == nil || w.Plan == nil || w.Plan.Live == nil {
		return
	}
	// Events about the same object are aggregated by the whole reference to it. With its version
	// there would be one for each write, without end.
	live := w.Plan.Live
	o := identify(live.GetAPIVersion(), live.GetKind(), live.GetNamespace(), live.GetName())
	o.SetUID(live.GetUID())
	w.m.recorder.Eventf(o, nil, kind, reason, "Migrate", "%s", message)
}

// sources are the managers that something was moved from.
func sources(moves []fields.Move) []string {
	var names []string
	for _, m := range moves {
		if m.From.Manager != "" {
			names = insert(names, m.From.Manager)
		}
	}

	return names
}
