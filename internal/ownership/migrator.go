package ownership

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
