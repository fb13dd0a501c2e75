package delivery

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

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

// swap replaces the view of a composition, and has workers forget the objects that it no
// longer has.
func (d *Deliverer) swap(name types.NamespacedName, v *view) {
	old := d.registry.put(name, v)
	if v != nil || old != nil {
		d.health.touch(name)
	}
	if old == nil {
		return
	}
	for id := range old.byID {
		if v == nil || v.byID[id] == nil {
			d.drop(key{name, id}, old.byID[id].memory)
			d.queue.Add(key{name, id}) // a worker may still use its memory
		}
	}
}

// known has deletions go on that waited for a composition, which was read.
func (d *Deliverer) known(name types.NamespacedName, c *enov1.Composition) {
	for _, v := range d.markRead(name, c.ResourceVersion) {
		for _, it := range v.items {
			if !hidden(it) && (v.deleting || it.Tombstone) {
				d.queue.Add(key{v.name, it.Identity})
			}
		}
	}
}
