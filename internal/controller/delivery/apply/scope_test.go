package apply

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
	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// TestScopeIsLearned makes a view before the scope of a kind is known, and another one
// after. Only then a tombstone and a manifest turn out to be about one object.
func TestScopeIsLearned(t *testing.T) {
	const group, version, kind = "eno.example.com", "v1", "Boulder"
	d, mapper := idleWorker(), meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: group, Version: version}})
	d.Mapper, d.Manifests.Scopes = kinds.NewCache(mapper, time.Now), d.ScopeOf
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{}
	of := func(namespace string) string {
		return `{"apiVersion":"` + group + "/" + version + `","kind":"` + kind + `","metadata":{"name":"rock","namespace":"` + namespace + `"}}`
	}
	all := []enov1.ResourceSlice{{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{{Manifest: of("b")}, {Manifest: of("a"), Deleted: true}}}}}
	id := func(namespace string) decide.Identity {
		return decide.Identity{Group: group, Kind: kind, Namespace: namespace, Name: "rock"}
	}

	v := d.NewView(c, all)
	d.swap(types.NamespacedName{Namespace: "n", Name: "c"}, v)
	for _, it := range v.Items {
		if model.IsInvalid(it) || d.outdated(v, it) {
			t.Errorf("the scope is not known, and %s is about another object", it.Identity)
		}
	}
	if !d.IsWanted(v.Name, id("b")) || !d.IsWanted(v.Name, id("")) || d.IsWanted(v.Name, id("a")) {
		t.Errorf("as long as the scope is not known, the object is claimed in its namespace and in none: %v", v.Wants)
	}

	mapper.Add(schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, meta.RESTScopeRoot)
	d.Mapper.Forget(schema.GroupKind{Group: group, Kind: kind}) // as when its CRD is applied
	for _, it := range v.Items {
		if !d.outdated(v, it) {
			t.Errorf("%s is used, although its kind is cluster-scoped", it.Identity)
		}
	}
	if !v.Rescoped.Load() {
		t.Error("the composition is not read again")
	}
	d.process(t.Context(), queue.Key{Composition: v.Name, Object: id("a")}) // it has no client: any request panics

	v = d.NewView(c, all)
	d.swap(client.ObjectKeyFromObject(c), v)
	if model.IsInvalid(v.Items[0]) || !model.IsInvalid(v.Items[1]) || v.Rescoped.Load() || slices.ContainsFunc(v.Items[:1], func(it *model.Item) bool { return d.outdated(v, it) }) {
		t.Error("of the tombstone and the manifest of one object, the manifest counts")
	}
	if diff := cmp.Diff([]decide.Identity{id("")}, v.Wants); diff != "" {
		t.Errorf("the object has no namespace: -want, +got:\n%s", diff)
	}
}
