package delivery

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// readers is how many slices of a composition are read at a time. Nothing is applied before all
// of them are read.
const readers = 4

// Reconcile sees to it that the view of a composition is current. The work itself
// is done by the workers.
func (d *Deliverer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := &enov1.Composition{}
	err := d.client.Get(ctx, request.NamespacedName, c)
	switch {
	case apierrors.IsNotFound(err) || err == nil && c.Status.CurrentSynthesis == nil:
		d.swap(request.NamespacedName, nil)
		d.known(request.NamespacedName, c)

		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot read composition %s: %w", request, err)
	}
	old := d.view(request.NamespacedName)
	d.checkSlices(ctx, old, c)
	if d.isCurrent(old, c) {
		for _, it := range old.inform(c) {
			d.queue.Add(key{old.name, it.Identity})
		}
		d.known(request.NamespacedName, c)

		return reconcile.Result{RequeueAfter: d.reloadAfter(old)}, d.reportConditions(ctx, old, c)
	}
	v, err := d.load(ctx, c, old)
	if err != nil {
		d.cannotRead(ctx, c, err)

		return reconcile.Result{}, err
	}
	if err := d.await(ctx, v); err != nil {
		return reconcile.Result{}, err
	}
	d.swap(request.NamespacedName, v)
	d.known(request.NamespacedName, c)
	d.checkMissed(ctx, v, old)
	for _, it := range v.begin() {
		d.queue.Forget(key{v.name, it.Identity})
		d.queue.Add(key{v.name, it.Identity})
	}
	d.refuse(v)
	d.block(v)
	d.warn(v, old)
	d.showDrift(v, old, c)

	return reconcile.Result{}, d.reportConditions(ctx, v, c)
}

// load reads the slices of a composition, past the cache, which has no manifests.
func (l *loader) load(ctx context.Context, c *enov1.Composition, old *view) (*view, error) {
	all, err := l.slices(ctx, c, c.Status.CurrentSynthesis, c.DeletionTimestamp != nil)
	if isLost(all, err, c) && old.isOfSlices(c) && !old.elsewhere {
		switch failed := l.restoreAll(ctx, old, c); {
		case failed == nil:
			all, err = l.slices(ctx, c, c.Status.CurrentSynthesis, c.DeletionTimestamp != nil)
		case !isTerminating(failed):
			return nil, failed // only the old view has the manifests
		}
	}
	if err != nil {
		return nil, err
	}
	v := l.newView(c, all)
	if len(all) < len(c.Status.CurrentSynthesis.ResourceSlices) {
		v.reloadAt = l.now().Add(reloadDelay)
	}
	v.adopt(old)
	if old == nil {
		v.recallHooks(c)
		l.recallDenials(v, c)
		if err := l.recall(ctx, c, v); err != nil {
			return nil, err
		}
	}
	v.remembers(c)
	if err := l.guardPruning(ctx, v, old, c); err != nil {
		return nil, err
	}

	return v, nil
}

// recall finds out what earlier syntheses tell: what was desired by the one before,
// if this one is not done yet, and which of the objects that are to go were
// delivered. A tombstone may have been carried over from one to the other before
// anybody came to it.
func (l *loader) recall(ctx context.Context, c *enov1.Composition, v *view) error {
	last := c.Status.PreviousSynthesis
	if last == nil {
		return nil
	}
	if c.Status.CurrentSynthesis.Reconciled == nil && !v.deleting || v.unproven() {
		if err := l.recallFrom(ctx, c, last, v, func(it *item, r *decide.Resource) { it.previous = pack(r) }); err != nil {
			return err
		}
	}
	for i := range c.Status.History {
		if !v.unproven() {
			return nil
		}
		if err := l.recallFrom(ctx, c, &c.Status.History[i], v, func(*item, *decide.Resource) {}); err != nil {
			return err
		}
	}

	return nil
}

// recallFrom reads one synthesis, and hands over what it desired.
func (l *loader) recallFrom(ctx context.Context, c *enov1.Composition, from *enov1.Synthesis, v *view, desired func(*item, *decide.Resource)) error {
	all, err := l.slices(ctx, c, from, true)
	if err != nil {
		return err
	}
	for _, s := range all {
		for i, m := range s.Spec.Resources {
			r, _ := l.readManifest(m, c.Annotations) // what is wrong with it is of no interest any more
			if r == nil || v.byID[r.Identity] == nil {
				continue
			}
			it := v.byID[r.Identity]
			if i < len(s.Status.Resources) {
				it.memory.left(s.Status.Resources[i].UID)
			}
			if !r.Tombstone {
				desired(it, r)
			}
		}
	}

	return nil
}

// slices reads those of a synthesis. Those that are lost are an error, unless some are enough.
func (l *loader) slices(ctx context.Context, c *enov1.Composition, s *enov1.Synthesis, some bool) ([]enov1.ResourceSlice, error) {
	read := make([]*enov1.ResourceSlice, len(s.ResourceSlices))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, ref := range s.ResourceSlices {
		group.Go(func() error {
			one, err := l.slice(ctx, c, ref)
			if some && (apierrors.IsNotFound(err) || isRejected(err)) {
				l.reportLeft(c, s, err)

				return nil
			}
			if err != nil {
				return fmt.Errorf("cannot read slice %s of composition %s: %w", ref.Name, client.ObjectKeyFromObject(c), err)
			}
			read[i] = one

			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := make([]enov1.ResourceSlice, 0, len(read))
	for _, one := range read {
		if one != nil {
			all = append(all, *one)
		}
	}

	return all, nil
}

// refuse writes what is wrong with the manifests that nothing can be done about.
// Of those there is nothing that could be deleted either.
func (d *Deliverer) refuse(v *view) {
	for _, it := range v.items {
		if !hidden(it) || it.elsewhere {
			d.hint(v, it)

			continue
		}
		s := enov1.ResourceState{}
		twice, ok := it.problem.(*duplicateError) //nolint:errorlint // nobody wraps it
		if v.deleting || ok && twice.tombstone {
			now := d.timestamp()
			s = enov1.ResourceState{Reconciled: true, Deleted: true, Ready: &now}
		} else {
			text := clip(it.problem.Error())
			s.ReconciliationError = &text
		}
		if s, changed, _ := v.settle(it, s); changed {
			d.status.set(v, it, s)
		}
	}
}

// hint says that there is no telling who delivers a manifest, unless somebody does.
func (d *Deliverer) hint(v *view, it *item) {
	if !it.elsewhere || it.problem == nil {
		return
	}
	text := clip(it.problem.Error())
	if s, changed := v.settleIf(it, func(s enov1.ResourceState) bool { return !isKnown(s) }, enov1.ResourceState{ReconciliationError: &text}); changed {
		d.status.hint(v, it, s)
	}
}

// view of a composition, nil if there is none.
func (r *registry) view(name types.NamespacedName) *view {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.views[name]
}

// swap replaces the view of a composition, and forgets the objects that it no
// longer has.
func (d *Deliverer) swap(name types.NamespacedName, v *view) {
	d.mu.Lock()
	d.forgetBroken(name)
	old := d.views[name]
	if old != nil {
		d.count(old, -1)
		d.backlog.remove(old)
	}
	if v == nil {
		delete(d.views, name)
	} else {
		if old != nil {
			old.replaceBy(v)
		}
		d.views[name] = v
		d.count(v, 1)
	}
	d.mu.Unlock()
	if v != nil || old != nil {
		d.health.touch(name)
	}
	if old == nil {
		return
	}
	for id := range old.byID {
		if v == nil || v.byID[id] == nil {
			d.gone.Store(key{name, id}, old.byID[id].memory)
			d.queue.Add(key{name, id}) // a worker may still use its memory
		}
	}
}

// forget ends the watch of an object that a composition no longer has.
func (w *worker) forget(k key) {
	if m, ok := w.gone.LoadAndDelete(k); ok {
		w.health.forget(k)
		if m, ok := m.(*memory); ok && m.tracked {
			m.tracked = false
			w.watches.untrack(m.at, k)
		}
	}
}

// find returns the item of a key.
func (r *registry) find(k key) (*view, *item) {
	v := r.view(k.composition)
	if v == nil || v.byID[k.object] == nil {
		return nil, nil
	}

	return v, v.byID[k.object]
}
