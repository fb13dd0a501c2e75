package apply

import "github.com/arbor-control/arbor/internal/controller/delivery/model"

// checkNamespace returns an error for an item without a namespace that needs one. It never
// keeps an item from being deleted: there is no such object.
func (w *Worker) checkNamespace(it *model.Item, going bool) error {
	if going || it.DisableReconciliation {
		return nil
	}

	return it.CheckNamespace(w.Manifests.Scopes)
}

// outdated reports whether the kind of an item has turned out to be cluster-scoped since
// the view was made. Two items of the view may be about one object then, for example a
// tombstone of namespace a and a manifest of namespace b. The composition is read again.
func (w *Worker) outdated(v *model.Composition, it *model.Item) bool {
	if !it.Unscoped {
		return false
	}
	if id, _ := it.Normalize(w.Manifests.Scopes.In(it.GVK.Version)); id == it.Identity {
		return false
	}
	v.Rescoped.Store(true)
	w.Requeue(v.Name)

	return true
}
