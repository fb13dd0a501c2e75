package synthesis_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// The example does what its comment describes.
func TestExample(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	file := filepath.Join(cluster.Root(), "examples", "composition.yaml")
	if out, errs, code := server.Arbor(t, "kubectl", "apply", "-f", file); code != 0 {
		t.Fatalf("%s%s", out, errs)
	}
	s.namespace = "default"
	c := s.await("wall", "it is synthesized", func(c *enov1.Composition) error {
		all, err := s.manifests(c.Status.CurrentSynthesis)
		if err != nil {
			return err
		}
		if len(all) != 1 || !strings.Contains(all[0].Manifest, `"painted":"red"`) {
			return fmt.Errorf("the manifests are %+v", all)
		}

		return nil
	})
	s.deliver(c, func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Deleted: true} })
	if out, errs, code := server.Arbor(t, "kubectl", "delete", "-f", file); code != 0 {
		t.Errorf("%s%s", out, errs)
	}
}

// Large output is split into slices, and nothing is lost.
func TestLarge(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizer(`x=$(head -c 200000 /dev/zero | tr '\0' x)
printf '{"items":['
for i in 1 2 3 4 5; do printf '%s{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%s"},"data":{"x":"%s"}}' "$comma" $i $x; comma=,; done
printf ']}'`)
	s.input("red")
	s.composition("c")
	s.await("c", "it is cut", func(c *enov1.Composition) error {
		all, err := s.manifests(c.Status.CurrentSynthesis)
		if err != nil {
			return err
		}
		if len(all) != 5 || len(c.Status.CurrentSynthesis.ResourceSlices) != 3 {
			return fmt.Errorf("%d manifests are in %d slices", len(all), len(c.Status.CurrentSynthesis.ResourceSlices))
		}

		return nil
	})
}

// Repeated failures are reported, with a limit.
func TestEvents(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s := newStage(t)
	s.synthesizer(`exit 1`)
	s.input("red")
	s.composition("c")
	s.await("c", "it has failed three times", func(c *enov1.Composition) error {
		if in := c.Status.InFlightSynthesis; in == nil || in.Attempts < 3 || in.Canceled == nil {
			return errors.New("it has not")
		}

		return nil
	})
	cluster.Eventually(t, "it was reported", func() error {
		list := &corev1.EventList{}
		if err := s.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		list.Items = slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.Reason != "SynthesisFailed" })
		if n := len(list.Items); n != 1 {
			return fmt.Errorf("there are %d events", n)
		}

		return nil
	})
}
