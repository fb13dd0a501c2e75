package delivery

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scopeOf reports whether a kind is namespaced, in any version that is served. The version
// of the manifest comes first: the mapper may not know it yet, and asks the server. If the
// server does not serve the kind, it is not asked again for a few seconds.
func (e *environment) scopeOf(gvk schema.GroupVersionKind) (namespaced, known bool) {
	mapping, err := e.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		mapping, err = e.mapper.RESTMapping(gvk.GroupKind())
	}
	if err != nil {
		return false, false
	}

	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// checkNamespace returns an error for an item without a namespace that needs one. It never
// keeps an item from being deleted: there is no such object.
func (w *worker) checkNamespace(it *item, going bool) error {
	if going || it.DisableReconciliation {
		return nil
	}

	return it.CheckNamespace(w.manifests.Scopes)
}

// outdated reports whether the kind of an item has turned out to be cluster-scoped since
// the view was made. Two items of the view may be about one object then, for example a
// tombstone of namespace a and a manifest of namespace b. The composition is read again.
func (w *worker) outdated(v *view, it *item) bool {
	if !it.Unscoped {
		return false
	}
	if id, _ := it.Normalize(w.manifests.Scopes.In(it.GVK.Version)); id == it.Identity {
		return false
	}
	v.rescoped.Store(true)
	w.requeue(v.name)

	return true
}
