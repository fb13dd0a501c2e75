package delivery

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// TestScopeIsLearned makes a view before the scope of a kind is known, and another one
// after. Only then a tombstone and a manifest turn out to be about one object.
func TestScopeIsLearned(t *testing.T) {
	const group, version, kind = "eno.example.com", "v1", "Boulder"
	d, mapper := idleWorker(), meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: group, Version: version}})
	d.mapper, d.manifests.Scopes = newKindCache(mapper, time.Now), d.scopeOf
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{}
	of := func(namespace string) string {
		return `{"apiVersion":"` + group + "/" + version + `","kind":"` + kind + `","metadata":{"name":"rock","namespace":"` + namespace + `"}}`
	}
	all := []enov1.ResourceSlice{{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{{Manifest: of("b")}, {Manifest: of("a"), Deleted: true}}}}}
	id := func(namespace string) decide.Identity {
		return decide.Identity{Group: group, Kind: kind, Namespace: namespace, Name: "rock"}
	}

	v := d.newView(c, all)
	d.swap(types.NamespacedName{Namespace: "n", Name: "c"}, v)
	for _, it := range v.items {
		if hidden(it) || d.outdated(v, it) {
			t.Errorf("the scope is not known, and %s is about another object", it.Identity)
		}
	}
	if !d.taken(v.name, id("b")) || !d.taken(v.name, id("")) || d.taken(v.name, id("a")) {
		t.Errorf("as long as the scope is not known, the object is claimed in its namespace and in none: %v", v.wants)
	}

	mapper.Add(schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, meta.RESTScopeRoot)
	d.mapper.forget(schema.GroupKind{Group: group, Kind: kind}) // as when its CRD is applied
	for _, it := range v.items {
		if !d.outdated(v, it) {
			t.Errorf("%s is used, although its kind is cluster-scoped", it.Identity)
		}
	}
	if !v.rescoped.Load() {
		t.Error("the composition is not read again")
	}
	d.one(t.Context(), key{v.name, id("a")}) // it has no client: any request panics

	v = d.newView(c, all)
	d.swap(client.ObjectKeyFromObject(c), v)
	if hidden(v.items[0]) || !hidden(v.items[1]) || v.rescoped.Load() || slices.ContainsFunc(v.items[:1], func(it *item) bool { return d.outdated(v, it) }) {
		t.Error("of the tombstone and the manifest of one object, the manifest counts")
	}
	if diff := cmp.Diff([]decide.Identity{id("")}, v.wants); diff != "" {
		t.Errorf("the object has no namespace: -want, +got:\n%s", diff)
	}
}
