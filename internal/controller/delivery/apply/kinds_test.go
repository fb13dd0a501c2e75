package apply

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
)

// A countingMapper counts lookups. If err is set, they all fail with it.
type countingMapper struct {
	*meta.DefaultRESTMapper

	lookups int
	err     error
	// during is called during each lookup, if it is set.
	during func()
}

func (m *countingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.lookups++
	mapping, err := m.DefaultRESTMapper.RESTMapping(kind, versions...)
	if m.during != nil {
		m.during()
	}
	if m.err != nil {
		return nil, m.err
	}

	return mapping, err
}

var boulder = schema.GroupVersionKind{Group: "eno.example.com", Version: "v1", Kind: "Boulder"}

// newKindWorld is a Deliverer to a server that does not serve Boulders, with a clock.
func newKindWorld() (*testWorker, *countingMapper, *time.Time) {
	d, now := idleWorker(), time.Unix(1_000_000, 0)
	mapper := &countingMapper{DefaultRESTMapper: meta.NewDefaultRESTMapper([]schema.GroupVersion{boulder.GroupVersion()})}
	d.Now = func() time.Time { return now }
	d.Mapper = kinds.NewCache(mapper, func() time.Time { return d.Now() })
	d.Manifests.Scopes = d.ScopeOf

	return d, mapper, &now
}

// TestUnknownKind has many manifests of a kind that is not served.
func TestUnknownKind(t *testing.T) {
	const many = 5000
	d, mapper, now := newKindWorld()
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{}
	all := make([]enov1.ResourceSlice, 1)
	for i := range many {
		all[0].Spec.Resources = append(all[0].Spec.Resources, enov1.Manifest{
			Manifest: fmt.Sprintf(`{"apiVersion":"eno.example.com/v1","kind":"Boulder","metadata":{"name":"b%d","namespace":"n"}}`, i),
		})
	}
	v := d.NewView(c, all)
	attempt := func() {
		for _, it := range v.Items {
			if d.outdated(v, it) {
				t.Fatalf("the scope of %s is known", it.Identity)
			}
		}
	}
	attempt()
	attempt()
	if mapper.lookups != 2 {
		t.Errorf("there were %d lookups, want one in the version and one in any", mapper.lookups)
	}
	*now = now.Add(kinds.UnknownKindTTL)
	attempt()
	if mapper.lookups != 4 {
		t.Errorf("there were %d lookups after the time to live, want 4", mapper.lookups)
	}

	// Its CRD is applied by another client.
	mapper.Add(boulder, meta.RESTScopeRoot)
	*now = now.Add(kinds.UnknownKindTTL)
	if !d.outdated(v, v.Items[0]) {
		t.Error("the scope is not known after the time to live")
	}
}

// TestKindBecomesKnown has a CRD delivered.
func TestKindBecomesKnown(t *testing.T) {
	d, mapper, _ := newKindWorld()
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "1"}}
	c.Status.CurrentSynthesis = &enov1.Synthesis{}
	v := d.NewView(c, []enov1.ResourceSlice{{Spec: enov1.ResourceSliceSpec{Resources: []enov1.Manifest{
		{Manifest: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boulders.eno.example.com"},
			"spec":{"group":"eno.example.com","names":{"kind":"Boulder"}}}`},
	}}}})
	d.swap(v.Name, v)
	if _, known := d.ScopeOf(boulder); known {
		t.Fatal("the kind is known before its CRD is applied")
	}
	mapper.Add(boulder, meta.RESTScopeRoot)
	if _, known := d.ScopeOf(boulder); known {
		t.Fatal("the kind is looked up again at once")
	}
	d.settleDelivered(v, v.Items[0].Unpacked(), outcome{})
	if namespaced, known := d.ScopeOf(boulder); namespaced || !known {
		t.Error("the kind is not known after its CRD was applied")
	}
}

// TestKindCacheKeeps has lookups that do not count for the next one.
func TestKindCacheKeeps(t *testing.T) {
	d, mapper, now := newKindWorld()
	mapper.err = errors.New("connection refused")
	for range 2 {
		if _, err := d.Mapper.RESTMapping(boulder.GroupKind(), "v1"); !errors.Is(err, mapper.err) {
			t.Fatal(err)
		}
	}
	if mapper.lookups != 2 {
		t.Errorf("an error that is not about the kind is remembered: %d lookups", mapper.lookups)
	}

	// The CRD is applied while a lookup is on its way that has not seen it.
	mapper.err, mapper.during = nil, func() {
		mapper.during = nil
		mapper.Add(boulder, meta.RESTScopeRoot)
		d.Mapper.Forget(boulder.GroupKind())
	}
	if _, known := d.ScopeOf(boulder); !known {
		t.Error("the second lookup does not find the kind")
	}
	if _, err := d.Mapper.RESTMapping(boulder.GroupKind(), "v1"); err != nil {
		t.Errorf("what a lookup found out before the CRD was applied is remembered: %v", err)
	}

	// One version is not served, another one is.
	old := boulder
	old.Version = "v1alpha1"
	mapper.lookups = 0
	for range 10 {
		if _, known := d.ScopeOf(old); !known {
			t.Fatal("the scope is not known in another version")
		}
	}
	if mapper.lookups != 11 {
		t.Errorf("%d lookups, want one in the version that is not served", mapper.lookups)
	}

	// While one caller asks again, the rest do not.
	*now = now.Add(kinds.UnknownKindTTL)
	mapper.during = func() {
		mapper.during = nil
		before := mapper.lookups
		if _, err := d.Mapper.RESTMapping(old.GroupKind(), old.Version); err == nil || mapper.lookups != before {
			t.Errorf("there are two lookups at once: %v", err)
		}
	}
	if _, err := d.Mapper.RESTMapping(old.GroupKind(), old.Version); err == nil {
		t.Error("a version that is not served is found")
	}

	// There are not too many.
	for i := range 3 * kinds.MaxUnknownKinds {
		_, _ = d.Mapper.RESTMapping(schema.GroupKind{Group: "eno.example.com", Kind: fmt.Sprintf("K%d", i)})
	}
	if n := len(d.Mapper.Unknown); n > kinds.MaxUnknownKinds {
		t.Errorf("%d kinds are remembered", n)
	}
}
