package synthesis_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestForcedNamespace has another client take away the finalizers of a namespace that
// does not go because no manager runs: the remedy that one finds everywhere. Then
// the namespace is gone and the composition is not, and no client can write to it.
func TestForcedNamespace(t *testing.T) {
	args := []string{"--controllers=synthesis,delivery", "--webhooks=false", "--local-synthesizers"}
	m := server.StartManager(t, args...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	s.composition("web")
	c := s.painted("web", "red")
	m.Kill()

	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	must(t, s.Delete(t.Context(), ns))
	s.await("web", "it must be deleted", func(c *enov1.Composition) error {
		if c.DeletionTimestamp == nil {
			return errors.New("it is not")
		}

		return nil
	})
	cluster.Eventually(t, "the namespace is forced to go", func() error {
		err := s.Get(t.Context(), client.ObjectKeyFromObject(ns), ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		ns.Spec.Finalizers = nil

		return errors.Join(err, s.SubResource("finalize").Update(t.Context(), ns), errors.New("it is still there"))
	})
	must(t, s.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	freed := c.DeepCopy()
	freed.Finalizers = nil
	// Else there would be nothing to help. The API server may still remember the namespace.
	cluster.Eventually(t, "a composition in no namespace cannot be written to", func() error {
		if err := s.Patch(t.Context(), freed.DeepCopy(), client.MergeFrom(c), client.DryRunAll); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it can"), err)
		}

		return nil
	})

	server.StartManager(t, append(args, "--namespace-cleanup")...)
	cluster.Eventually(t, "everything is gone", func() error {
		for _, o := range []client.Object{c, ns} {
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T %s: %w", o, o.GetName(), errors.Join(err, errors.New("it is there")))
			}
		}

		return nil
	})
}
