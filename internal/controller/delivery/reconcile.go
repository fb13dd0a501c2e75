package delivery

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
)

// Reconcile sees to it that the view of a composition is current. The work itself
// is done by the workers.
func (d *Deliverer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := &enov1.Composition{}
	err := d.Client.Get(ctx, request.NamespacedName, c)
	switch {
	case apierrors.IsNotFound(err) || err == nil && c.Status.CurrentSynthesis == nil:
		d.swap(request.NamespacedName, nil)
		d.markLoaded(request.NamespacedName, c)

		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot read composition %s: %w", request, err)
	}
	old := d.View(request.NamespacedName)
	d.CheckSlices(ctx, old, c)
	if d.IsCurrent(old, c) {
		for _, it := range old.UpdateMetadata(c) {
			d.Queue.Add(queue.Key{Composition: old.Name, Object: it.Identity})
		}
		d.markLoaded(request.NamespacedName, c)

		return reconcile.Result{RequeueAfter: d.ReloadAfter(old)}, d.reportConditions(ctx, old, c)
	}
	v, err := d.Load(ctx, c, old)
	if err != nil {
		d.reportUnreadable(ctx, c, err)

		return reconcile.Result{}, err
	}
	if err := d.AwaitOthers(ctx, v); err != nil {
		return reconcile.Result{}, err
	}
	d.swap(request.NamespacedName, v)
	d.markLoaded(request.NamespacedName, c)
	d.CheckMissed(ctx, v, old)
	for _, it := range v.Start() {
		d.Queue.Forget(queue.Key{Composition: v.Name, Object: it.Identity})
		d.Queue.Add(queue.Key{Composition: v.Name, Object: it.Identity})
	}
	d.reportInvalid(v)
	d.reportBlocked(v)
	d.warn(v, old)
	d.showDrift(v, old, c)

	return reconcile.Result{}, d.reportConditions(ctx, v, c)
}

// swap replaces the view of a composition, and has workers forget the objects that it no
// longer has.
func (d *Deliverer) swap(name types.NamespacedName, v *model.Composition) {
	old := d.Put(name, v)
	if v != nil || old != nil {
		d.Health.Enqueue(name)
	}
	if old == nil {
		return
	}
	for id := range old.ByID {
		if v == nil || v.ByID[id] == nil {
			d.Drop(queue.Key{Composition: name, Object: id}, old.ByID[id].Memory)
			d.Queue.Add(queue.Key{Composition: name, Object: id}) // a worker may still use its memory
		}
	}
}

// markLoaded has deletions go on that waited for a composition, which was read.
func (d *Deliverer) markLoaded(name types.NamespacedName, c *enov1.Composition) {
	for _, v := range d.MarkRead(name, c.ResourceVersion) {
		for _, it := range v.Items {
			if !model.IsInvalid(it) && (v.Deleting || it.Tombstone) {
				d.Queue.Add(queue.Key{Composition: v.Name, Object: it.Identity})
			}
		}
	}
}
