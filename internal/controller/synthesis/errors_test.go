package synthesis

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
	"github.com/arbor-control/arbor/internal/synthesis"
)

// TestErrors has each request fail while the status of a composition is kept, and while it is deleted.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, enov1.AddToScheme)
	clock := time.Unix(1_000_000, 0)
	composition := func(change func(*enov1.Composition)) *enov1.Composition {
		c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "c", Generation: 1, Finalizers: []string{enov1.Finalizer}}}
		c.Spec.Synthesizer.Name = "s"
		change(c)

		return c
	}
	synthesizer := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s", Generation: 1}, Spec: enov1.SynthesizerSpec{Image: "i"}}
	slice := func(owner *enov1.Composition, name string, state enov1.ResourceState) *enov1.ResourceSlice {
		return &enov1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: name, Finalizers: []string{enov1.Finalizer},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, enov1.GroupVersion.WithKind(enov1.CompositionKind))},
			},
			Spec:   enov1.ResourceSliceSpec{SynthesisUUID: "u", Resources: []enov1.Manifest{{Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`}}},
			Status: enov1.ResourceSliceStatus{Resources: []enov1.ResourceState{state}},
		}
	}
	synthesized := func(c *enov1.Composition) {
		c.Status.CurrentSynthesis = &enov1.Synthesis{UUID: "u", Synthesized: &metav1.Time{Time: clock}, ObservedCompositionGeneration: 1, ObservedSynthesizerGeneration: 1, ResourceSlices: []*enov1.ResourceSliceRef{{Name: "a"}}}
	}
	ready := enov1.ResourceState{Reconciled: true, Ready: &metav1.Time{Time: clock}}
	current := composition(synthesized)
	deleted := composition(func(c *enov1.Composition) {
		synthesized(c)
		c.DeletionTimestamp = &metav1.Time{Time: clock}
	})
	gone := ready
	gone.Deleted = true
	waiting := composition(func(c *enov1.Composition) {
		c.Spec.DependsOn = []enov1.CompositionDependency{{Name: "d"}}
	})
	dependency := composition(synthesized)
	dependency.Name, dependency.UID = "d", "d"
	cycle := deleted.DeepCopy()
	cycle.Spec.DependsOn = waiting.Spec.DependsOn
	dependent := dependency.DeepCopy()
	dependent.Spec.DependsOn = []enov1.CompositionDependency{{Name: "c"}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"New":     {"The finalizer comes first.", []client.Object{synthesizer, composition(func(c *enov1.Composition) { c.Finalizers = nil })}},
		"Ready":   {"All objects are ready, which the status shows.", []client.Object{synthesizer, current, slice(current, "a", ready)}},
		"Surplus": {"A slice that no synthesis has is deleted.", []client.Object{synthesizer, current, slice(current, "a", ready), slice(current, "b", ready)}},
		"Dependency": {
			"A composition that cannot be read exists nevertheless: the one that depends on it waits, and its status does not show that it does not exist.",
			[]client.Object{synthesizer, waiting, dependency},
		},
		"Cycle": {
			"Compositions that depend on each other do not wait for each other to be deleted.",
			[]client.Object{synthesizer, cycle, dependent, slice(cycle, "a", gone)},
		},
		"Deleted": {"All objects are deleted: the slices go first, the composition last.", []client.Object{synthesizer, deleted, slice(deleted, "a", gone)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			passed := time.Duration(0)
			controllertest.Check(t, controllertest.Case{
				Advance: func(by time.Duration) { passed += by },
				Scheme:  scheme, Objects: tc.objects, Status: []client.Object{&enov1.Composition{}, &enov1.ResourceSlice{}},
				Index: []func(context.Context, client.FieldIndexer) error{index},
				New: func(s *controllertest.Server) controllertest.Step {
					passed = 0
					now := func() time.Time { return clock.Add(passed) }
					r := &Reconciler{
						client: s, reader: s, now: now, options: Options{Pods: true, Timeout: time.Minute},
						inputs: &inputs{bound: map[types.NamespacedName][]synthesis.Target{}, users: map[synthesis.Target]map[types.NamespacedName]bool{}, kinds: map[schema.GroupVersionKind]*watched{}},
						worker: &Worker{pods: true, recorder: &events.FakeRecorder{}, now: now, flights: map[types.UID]*flight{}},
					}

					return controllertest.Reconciling(r, "n", "c")
				},
				Final: func() []client.ObjectList {
					return []client.ObjectList{&enov1.CompositionList{}, &enov1.ResourceSliceList{}}
				},
			})
		})
	}
}
