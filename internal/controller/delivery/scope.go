package delivery

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// scopeOf reports whether a kind is namespaced, in any version that is served. The version
// of the manifest comes first: the mapper may not know it yet, and asks the server. If the
// server does not serve the kind, it is not asked again for a few seconds.
func (d *Deliverer) scopeOf(gvk schema.GroupVersionKind) (namespaced, known bool) {
	mapping, err := d.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		mapping, err = d.mapper.RESTMapping(gvk.GroupKind())
	}
	if err != nil {
		return false, false
	}

	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// checkNamespace returns an error for an item without a namespace that needs one. It never
// keeps an item from being deleted: there is no such object.
func (d *Deliverer) checkNamespace(it *item, going bool) error {
	if going || it.DisableReconciliation {
		return nil
	}

	return it.CheckNamespace(d.manifests.Scopes)
}

// claimsOf are the identities under which no other composition may delete the object of
// a resource. As long as the scope of its kind is not known, there are two.
func claimsOf(r *decide.Resource) []decide.Identity {
	if r.Unscoped {
		return []decide.Identity{r.Identity, r.ClusterScoped()}
	}

	return []decide.Identity{r.Identity}
}

// isOf reports whether a view, if there is one, is still that of a version.
func (v *view) isOf(now version) bool {
	return v != nil && v.version == now && !v.rescoped.Load()
}

// outdated reports whether the kind of an item has turned out to be cluster-scoped since
// the view was made. Two items of the view may be about one object then, for example a
// tombstone of namespace a and a manifest of namespace b. The composition is read again.
func (d *Deliverer) outdated(v *view, it *item) bool {
	if !it.Unscoped {
		return false
	}
	if id, _ := it.Normalize(d.manifests.Scopes.In(it.GVK.Version)); id == it.Identity {
		return false
	}
	v.rescoped.Store(true)
	d.requeue(v.name)

	return true
}
