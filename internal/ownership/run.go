package ownership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
)

// run is one call of Migrate.
type run struct {
	Result

	m       *Migrator
	request Request
	// asRead is that entries are taken as the server reads them.
	asRead bool
	// would is what the apply after the last move makes of the object, by a dry
	// run, and unanswered its plan if nobody knows whether it was done.
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

// deliver applies what is desired, on condition that nobody wrote in between. If
// anything was moved for it, it is tried first as a dry run: as long as nothing
// is applied, all can be put back.
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

// restore puts back what was moved, since what it was moved for has failed. If
// nobody answered the apply, it may have been done nevertheless; then that is
// what came of it.
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

// landed says whether an object is one that the unanswered apply was done to:
// the manager has what it applies, and had something else when it was moved.
func (w *run) landed(live *unstructured.Unstructured) bool {
	p := w.unanswered
	if p == nil || !p.said || !p.next.Equals(appliedBy(live, w.m.manager)) || p.next.Equals(ownOf(p.Entries, w.m.manager)) {
		return false
	}
	w.Applied = true

	return true
}

// finish says what came of it: loudly only if something was done, or cannot be.
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
	// Events about the same object are told from others by all of the reference to
	// it. With its version they would be one for each write, without end.
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
