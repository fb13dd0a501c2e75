package tutorial_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestTutorial goes through docs/start/delivery-tutorial.md, section by section. Each
// goes on where the one before has ended.
func TestTutorial(t *testing.T) {
	server.StartManager(t, both...)
	for _, section := range []struct {
		title string
		play  func(*stage)
	}{
		{"2. The first synthesis", (*stage).begin},
		{"3. An input changes", (*stage).change},
		{"4. The program fails", (*stage).fail},
		{"5. Take over what somebody else made", (*stage).takeOver},
		{"6. Drift", (*stage).drift},
		{"7. Roll back, and go on", (*stage).rollBack},
		{"8. Delete", (*stage).clear},
	} {
		ok := t.Run(section.title, func(t *testing.T) {
			section.play(&stage{T: t, Client: server.Client(t, nil), namespace: metav1.NamespaceDefault})
		})
		if !ok {
			t.FailNow()
		}
	}
}

func (s *stage) begin() {
	s.kubectl("apply", "-f", example("synthesizer"), "-f", example("site"))
	s.kubectl("wait", "composition/site", "--for=condition=Ready", "--timeout=2m")
	s.runs("site", "web:1", 1)
	if o := s.service("site"); o == nil {
		s.Error("there is no Service")
	}
	o := s.deployment("site")
	for name := range o.Annotations {
		if strings.HasPrefix(name, "eno.azure.io/") {
			s.Errorf("the Deployment has the annotation %s", name)
		}
	}
	c, err := s.composition("site")
	must(s, err)
	for _, kind := range []string{enov1.ConditionSynthesized, enov1.ConditionReconciled, enov1.ConditionReady} {
		if !meta.IsStatusConditionTrue(c.Status.Conditions, kind) {
			s.Errorf("%s is not True: %+v", kind, c.Status.Conditions)
		}
	}
}

func (s *stage) change() {
	s.set("site-settings", "image", "web:2")
	s.runs("site", "web:2", 1)
}

func (s *stage) fail() {
	before, err := s.composition("site")
	must(s, err)
	s.set("site-settings", "image", "")
	s.says("site", enov1.StatusSynthesisBackoff, "settings has no image")
	after, err := s.composition("site")
	must(s, err)
	if got, want := after.Status.CurrentSynthesis.UUID, before.Status.CurrentSynthesis.UUID; got != want {
		s.Errorf("the current synthesis is %s, was %s", got, want)
	}
	if image := s.deployment("site").Spec.Template.Spec.Containers[0].Image; image != "web:2" {
		s.Errorf("the Deployment has %s", image)
	}
	s.set("site-settings", "image", "web:3")
	s.runs("site", "web:3", 1)
}

func (s *stage) takeOver() {
	s.kubectl("create", "--field-manager=legacy", "-f", example("legacy"))
	s.kubectl("apply", "-f", example("shop"))
	s.runs("shop", "shop:2", 4)
	if n := len(s.deployment("shop").Spec.Template.Spec.InitContainers); n != 1 {
		s.Fatalf("there are %d init containers before", n)
	}
	if _, _, code := server.Arbor(s, "fields", "check", "deploy/shop", "--scope=spec.template.spec.initContainers", "--manager=eno"); code != 1 {
		s.Fatalf("the init container is not split: %d", code)
	}
	s.set("shop-settings", "warmUp", "no")
	cluster.Eventually(s, "the init container is gone", func() error {
		if n := len(s.deployment("shop").Spec.Template.Spec.InitContainers); n != 0 {
			return fmt.Errorf("there are %d", n)
		}

		return nil
	})
	s.runs("shop", "shop:2", 4)
	cluster.Eventually(s, "the composition says what was done", func() error {
		c, err := s.composition("shop")
		if err != nil {
			return err
		}
		report := c.Status.Ownership
		if report == nil || report.Migrated != 1 || report.Objects[0].Message != "eno owns what legacy had of spec.template.spec.initContainers" {
			return fmt.Errorf("it says %+v", report)
		}

		return nil
	})
}

func (s *stage) drift() {
	s.kubectl("set", "image", "deployment/site", "web=web:wrong")
	s.runs("site", "web:3", 1)
	was := s.service("site")
	s.kubectl("delete", "service", "site")
	cluster.Eventually(s, "the Service is there again", func() error {
		if o := s.service("site"); o == nil || o.UID == was.UID {
			return errors.New("it is not")
		}

		return nil
	})
	s.kubectl("scale", "deployment/site", "--replicas=2")
	s.runs("site", "web:3", 2)
}

func (s *stage) rollBack() {
	c, err := s.composition("site")
	must(s, err)
	to := c.Status.PreviousSynthesis.UUID
	s.kubectl("annotate", "composition", "site", "arbor-control.dev/rollback-to="+to)
	s.runs("site", "web:2", 2)
	cluster.Eventually(s, "it says that it is rolled back", func() error {
		c, err := s.composition("site")
		if err != nil {
			return err
		}
		if said := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionSynthesized); said == nil || said.Reason != decide.ReasonRolledBack || c.Status.CurrentSynthesis.RolledBackTo != to {
			return fmt.Errorf("it says %+v, and has %+v", said, c.Status.CurrentSynthesis)
		}

		return nil
	})
	s.kubectl("annotate", "composition", "site", "arbor-control.dev/rollback-to-")
	s.runs("site", "web:3", 2)
}

func (s *stage) clear() {
	s.kubectl("delete", "composition", "site", "shop")
	cluster.Eventually(s, "nothing is left", func() error {
		for _, list := range []client.ObjectList{&enov1.CompositionList{}, &enov1.ResourceSliceList{}, &appsv1.DeploymentList{}} {
			if err := s.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
				return err
			}
			if n := meta.LenList(list); n != 0 {
				return fmt.Errorf("%d are left of %T", n, list)
			}
		}

		return nil
	})
	if s.service("site") != nil || s.service("shop") != nil {
		s.Error("a Service is left")
	}
	s.kubectl("delete", "-f", example("synthesizer"), "-f", example("site"), "-f", example("shop"), "--ignore-not-found")
}

// set changes one setting.
func (s *stage) set(name, key, value string) {
	s.Helper()
	s.kubectl("patch", "configmap", name, "--type=merge", "-p", fmt.Sprintf(`{"data":{%q:%q}}`, key, value))
}

// says waits until a composition has a status.
func (s *stage) says(name, status, text string) {
	s.Helper()
	cluster.Eventually(s, name+" says "+status, func() error {
		c, err := s.composition(name)
		if err != nil {
			return err
		}
		if said := c.Status.Simplified; said == nil || said.Status != status || said.Error != text {
			return fmt.Errorf("it says %+v", said)
		}

		return nil
	})
}

// runs waits until a composition is Ready, and its Deployment has an image and so
// many replicas, all of them available.
func (s *stage) runs(name, image string, replicas int32) {
	s.Helper()
	cluster.Eventually(s, fmt.Sprintf("%d of %s run %s", replicas, name, image), func() error {
		o := &appsv1.Deployment{}
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
			return err
		}
		if got := o.Spec.Template.Spec.Containers[0].Image; got != image || *o.Spec.Replicas != replicas || o.Status.AvailableReplicas != replicas || o.Status.UpdatedReplicas != replicas {
			return fmt.Errorf("the Deployment has %s, %d replicas and %+v", got, *o.Spec.Replicas, o.Status)
		}

		return nil
	})
	s.says(name, enov1.StatusReady, "")
}

func (s *stage) deployment(name string) *appsv1.Deployment {
	s.Helper()
	o := &appsv1.Deployment{}
	must(s, s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o))

	return o
}

// service returns one, nil if there is none.
func (s *stage) service(name string) *corev1.Service {
	s.Helper()
	o := &corev1.Service{}
	err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(s, err)

	return o
}
