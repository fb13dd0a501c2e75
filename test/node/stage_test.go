package node_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// A stage is a namespace with a Synthesizer and a Composition of the same name.
type stage struct {
	client.Client

	t         *testing.T
	namespace string
	// annotations of the pods.
	annotations map[string]string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	c := server.Client(t, nil)

	return &stage{Client: c, t: t, namespace: cluster.Namespace(t, c)}
}

// output is the name of the ConfigMap that a program writes.
const output = "out"

// compose makes the Synthesizer, and a Composition, which is deleted with the test. Its pods
// have a limit for memory, as a quota wants it.
func (s *stage) compose(image string, command ...string) {
	s.t.Helper()
	synthesizer := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: enov1.SynthesizerSpec{Image: image, Command: command}}
	synthesizer.Spec.PodOverrides.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	synthesizer.Spec.PodOverrides.Annotations = s.annotations
	must(s.t, s.Create(s.t.Context(), synthesizer))
	composition := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.namespace}}
	composition.Spec.Synthesizer.Name = s.namespace
	must(s.t, s.Create(s.t.Context(), composition))
	s.t.Cleanup(func() { _ = s.Delete(context.WithoutCancel(s.t.Context()), composition) })
}

// await waits until the composition is as it should be, and returns it.
func (s *stage) await(what string, condition func(*enov1.Composition) error) *enov1.Composition {
	s.t.Helper()
	c := &enov1.Composition{}
	cluster.Eventually(s.t, what, func() error {
		*c = enov1.Composition{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: s.namespace}, c); err != nil {
			return err
		}
		if err := condition(c); err != nil {
			return fmt.Errorf("%w; simplified %+v, in flight %+v", err, c.Status.Simplified, c.Status.InFlightSynthesis)
		}

		return nil
	})

	return c
}

// ready waits until what the composition wants is in the cluster, and returns the data of the
// ConfigMap that the program wrote.
func (s *stage) ready() (*enov1.Composition, map[string]string) {
	s.t.Helper()
	c := s.await("the composition is ready", func(c *enov1.Composition) error {
		if now := c.Status.CurrentSynthesis; now == nil || now.Ready == nil {
			return errors.New("it is not ready")
		}

		return nil
	})
	o := &corev1.ConfigMap{}
	must(s.t, s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: output}, o))

	return c, o.Data
}

// pod waits for the pod of the synthesis in flight.
func (s *stage) pod() corev1.Pod {
	s.t.Helper()
	pods := &corev1.PodList{}
	s.await("the composition has a pod", func(c *enov1.Composition) error {
		in := c.Status.InFlightSynthesis
		if in == nil || in.Canceled != nil {
			return errors.New("nothing is in flight")
		}
		if err := s.List(s.t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{enov1.LabelSynthesisUUID: in.UUID}); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("it has %d pods", len(pods.Items))
		}

		return nil
	})

	return pods.Items[0]
}
