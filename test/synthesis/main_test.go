// Package synthesis_test tests the synthesis of compositions on a real API server.
package synthesis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

// paint makes a ConfigMap of the color of its input.
const paint = `color=$(sed 's/.*"color":"\([a-z0-9]*\)".*/\1/')
printf '{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"out","namespace":"%s"},"data":{"color":"%s"}}]}' "$COMPOSITION_NAMESPACE" "$color"`

// managerArgs are those of managers that run programs.
var managerArgs = []string{"--controllers=synthesis", "--webhooks=false", "--local-synthesizers", "--rollout-cooldown=0s"}

// A stage is a namespace with what is played in it.
type stage struct {
	client.Client

	t         *testing.T
	namespace string
}

// newStage makes a namespace. What is left of it at the end of the test is cleared away while there
// is still a manager, so that it does not disturb other tests: it must be made after the manager.
func newStage(t *testing.T) *stage {
	t.Helper()
	c := server.Client(t, nil)
	s := &stage{Client: c, t: t, namespace: cluster.Namespace(t, c)}
	t.Cleanup(func() {
		ctx := context.Background()
		symphonies, list := &enov1.SymphonyList{}, &enov1.CompositionList{}
		_ = c.List(ctx, symphonies, client.InNamespace(s.namespace)) // first, or they would make new compositions
		for i := range symphonies.Items {
			_ = c.Delete(ctx, &symphonies.Items[i])
		}
		_ = c.List(ctx, list, client.InNamespace(s.namespace))
		for i := range list.Items {
			_ = c.Patch(ctx, &list.Items[i], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"eno.azure.io/deletion-strategy":"orphan"}}}`)))
			_ = c.Delete(ctx, &list.Items[i])
		}
		_ = c.Delete(ctx, &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	})

	return s
}

// install makes the kinds known, for tests that write before a manager runs.
func install(t *testing.T) {
	t.Helper()
	c := server.Client(t, nil)
	must(t, cluster.Define(t.Context(), c, enov1.GroupVersion, enov1.CompositionKind, enov1.SynthesizerKind, enov1.ResourceSliceKind, enov1.SymphonyKind))
}

// synthesizer makes a program of a script, with an input by the key in.
func (s *stage) synthesizer(script string) *enov1.Synthesizer {
	s.t.Helper()
	o := &enov1.Synthesizer{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: enov1.SynthesizerSpec{
			Command: []string{"sh", "-c", script}, Image: "none",
			Refs: []enov1.Ref{{Key: "in", Resource: enov1.ResourceRef{Version: "v1", Kind: "ConfigMap"}}},
		},
	}
	must(s.t, s.Create(s.t.Context(), o))

	return o
}

// input makes or changes the ConfigMap that compositions are bound to.
func (s *stage) input(color string) {
	s.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "in"}, Data: map[string]string{"color": color}}
	if err := s.Update(s.t.Context(), o); err != nil {
		must(s.t, s.Create(s.t.Context(), o))
	}
}

func (s *stage) composition(name string) *enov1.Composition {
	s.t.Helper()
	c := &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: enov1.CompositionSpec{
			Synthesizer: enov1.SynthesizerRef{Name: s.namespace},
			Bindings:    []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: s.namespace, Name: "in"}}},
		},
	}
	must(s.t, s.Create(s.t.Context(), c))

	return c
}

// await waits until a composition is as it should be, and returns it.
func (s *stage) await(name, what string, condition func(*enov1.Composition) error) *enov1.Composition {
	s.t.Helper()
	c := &enov1.Composition{}
	cluster.Eventually(s.t, what, func() error {
		*c = enov1.Composition{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, c); err != nil {
			return err
		}
		if err := condition(c); err != nil {
			return fmt.Errorf("%w; simplified %+v, in flight %+v, current %+v, conditions %+v", err, c.Status.Simplified, c.Status.InFlightSynthesis, c.Status.CurrentSynthesis, c.Status.Conditions)
		}

		return nil
	})

	return c
}

// painted waits until the current synthesis of a composition has a color.
func (s *stage) painted(name, color string) *enov1.Composition {
	s.t.Helper()
	want := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"out","namespace":%q},"data":{"color":%q}}`, s.namespace, color)

	return s.await(name, name+" is "+color, func(c *enov1.Composition) error {
		manifests, err := s.manifests(c.Status.CurrentSynthesis)
		if err != nil {
			return err
		}
		if c.Status.InFlightSynthesis != nil || !slices.Contains(manifests, enov1.Manifest{Manifest: want}) {
			return fmt.Errorf("the manifests are %+v", manifests)
		}

		return nil
	})
}

// manifests reads those of a synthesis, and checks its slices.
func (s *stage) manifests(of *enov1.Synthesis) ([]enov1.Manifest, error) {
	if of == nil {
		return nil, errors.New("there is no synthesis")
	}
	var all []enov1.Manifest
	for _, ref := range of.ResourceSlices {
		slice := &enov1.ResourceSlice{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: ref.Name}, slice); err != nil {
			return nil, err
		}
		if owner := metav1.GetControllerOf(slice); owner == nil || !slices.Contains(slice.Finalizers, enov1.Finalizer) {
			s.t.Errorf("slice %+v of synthesis %s", slice.ObjectMeta, of.UUID)
		}
		all = append(all, slice.Spec.Resources...)
	}

	return all, nil
}

// deliver plays the other part: it reports of every manifest of the current
// synthesis what became of it.
func (s *stage) deliver(c *enov1.Composition, state func(enov1.Manifest) enov1.ResourceState) {
	s.t.Helper()
	for _, ref := range c.Status.CurrentSynthesis.ResourceSlices {
		slice := &enov1.ResourceSlice{}
		must(s.t, s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: ref.Name}, slice))
		slice.Status.Resources = nil
		for _, m := range slice.Spec.Resources {
			slice.Status.Resources = append(slice.Status.Resources, state(m))
		}
		must(s.t, s.Status().Update(s.t.Context(), slice))
	}
}

// tidy waits until there are no slices but those that syntheses refer to.
func (s *stage) tidy() {
	s.t.Helper()
	cluster.Eventually(s.t, "no slice is left over", func() error {
		compositions, all := &enov1.CompositionList{}, &enov1.ResourceSliceList{}
		if err := errors.Join(s.List(s.t.Context(), all, client.InNamespace(s.namespace)), s.List(s.t.Context(), compositions, client.InNamespace(s.namespace))); err != nil {
			return err
		}
		var left []string
		for i := range all.Items {
			slice := &all.Items[i]
			kept := slices.ContainsFunc(compositions.Items, func(c enov1.Composition) bool {
				return metav1.IsControlledBy(slice, &c) && len(decide.Garbage(&c.Status, []*enov1.ResourceSlice{slice})) == 0
			})
			if !kept {
				left = append(left, slice.Name)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d slices have no composition: %v", len(left), left)
		}

		return nil
	})
}

// rollBack has a composition rolled back to a synthesis, or no longer.
func (s *stage) rollBack(c *enov1.Composition, to string) {
	s.t.Helper()
	text := strconv.Quote(to)
	if to == "" {
		text = "null"
	}
	must(s.t, s.Patch(s.t.Context(), c, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, enov1.AnnotationRollback, text))))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
