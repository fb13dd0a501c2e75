package symphony

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
)

// TestErrors has each request fail while the Compositions of a Symphony are created, and deleted.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, enov1.AddToScheme)
	symphony := func(change func(*enov1.Symphony)) *enov1.Symphony {
		s := &enov1.Symphony{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "1", Generation: 1}, Spec: enov1.SymphonySpec{
			Variations: []enov1.Variation{{Synthesizer: enov1.SynthesizerRef{Name: "a"}}, {Synthesizer: enov1.SynthesizerRef{Name: "b"}}},
		}}
		change(s)

		return s
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"New": {"The finalizer comes first, then each Composition, then the status.", []client.Object{symphony(func(*enov1.Symphony) {})}},
		"Deleted": {"Without Compositions, the finalizer is removed.", []client.Object{symphony(func(s *enov1.Symphony) {
			s.Finalizers, s.DeletionTimestamp = []string{enov1.Finalizer}, &metav1.Time{Time: time.Unix(1_000_000, 0)}
		})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: tc.objects, Status: []client.Object{&enov1.Symphony{}, &enov1.Composition{}},
				Index: []func(context.Context, client.FieldIndexer) error{indexOwners},
				OnCreate: func(o client.Object) {
					if c, ok := o.(*enov1.Composition); ok && c.Name == "" {
						c.Name = c.GenerateName + c.Spec.Synthesizer.Name
					}
				},
				New: func(s *controllertest.Server) controllertest.Step {
					r := &Reconciler{client: s, reader: s, now: func() time.Time { return time.Unix(1_000_000, 0) }}

					return controllertest.Reconciling(r, "n", "s")
				},
				Final: func() []client.ObjectList {
					return []client.ObjectList{&enov1.SymphonyList{}, &enov1.CompositionList{}}
				},
			})
		})
	}
}
