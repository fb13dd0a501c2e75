package synthesis_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

// restricted are the arguments of a manager that keeps tenants apart.
func restricted(more ...string) []string {
	return slices.Concat(managerArgs, []string{"--delivery-scope=namespace"}, more)
}

// change updates the spec or the annotations of a composition.
func (s *stage) change(name string, change func(*enov1.Composition)) {
	s.t.Helper()
	must(s.t, kube.RetryOnConflict(s.t.Context(), func(ctx context.Context) error {
		c := &enov1.Composition{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, c); err != nil {
			return err
		}
		change(c)

		return s.Update(ctx, c)
	}))
}

// bind has the input of composition c be another object.
func (s *stage) bind(namespace, object string) {
	s.t.Helper()
	s.change("c", func(c *enov1.Composition) {
		c.Spec.Bindings = []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: namespace, Name: object}}}
	})
}

// violates waits until a condition of composition c has a reason, "" for none, and a text in
// its message.
func (s *stage) violates(condition, reason, text string) *enov1.Composition {
	s.t.Helper()

	return s.await("c", fmt.Sprintf("c has %s %q", condition, reason), func(c *enov1.Composition) error {
		is := meta.FindStatusCondition(c.Status.Conditions, condition)
		switch {
		case is == nil && reason != "":
			return errors.New("the condition is absent")
		case is != nil && (is.Reason != reason || !strings.Contains(is.Message, text)):
			return fmt.Errorf("the condition is %+v", is)
		}

		return nil
	})
}

// TestForeignInput binds objects that a tenant may not read. What was synthesized before stays,
// and the next synthesis waits until the binding is allowed.
func TestForeignInput(t *testing.T) {
	shared := cluster.Namespace(t, server.Client(t, nil))
	server.StartManager(t, restricted("--input-namespaces="+shared)...)
	s, victim := newStage(t), newStage(t)
	s.synthesizer(paint)
	victim.input("secret")
	must(t, s.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shared, Name: "in"}, Data: map[string]string{"color": "blue"}}))
	s.input("red")
	s.composition("c")
	before := s.painted("c", "red")

	s.bind(victim.namespace, "in")
	want := fmt.Sprintf(`binding "in": ConfigMap %s/in is not in namespace %s; bind an object of this namespace, or have an administrator add %s to --input-namespaces`, victim.namespace, s.namespace, victim.namespace)
	s.simplified("c", enov1.StatusMissingInputs, want)
	c := s.violates(enov1.ConditionInputForbidden, enov1.ReasonNamespaceNotAllowed, want)
	if c.Status.CurrentSynthesis.UUID != before.Status.CurrentSynthesis.UUID || c.Status.InFlightSynthesis != nil || len(c.Status.InputRevisions) != 0 {
		t.Errorf("current %+v, in flight %+v, inputs %+v", c.Status.CurrentSynthesis, c.Status.InFlightSynthesis, c.Status.InputRevisions)
	}
	// Whether the object exists is not shown.
	s.bind(victim.namespace, "no-such-object")
	s.violates(enov1.ConditionInputForbidden, enov1.ReasonNamespaceNotAllowed, victim.namespace+"/no-such-object is not in namespace")
	s.bind("", "in")
	s.violates(enov1.ConditionInputForbidden, enov1.ReasonClusterScoped, "ConfigMap in has no namespace")

	s.bind(shared, "in")
	s.painted("c", "blue")
	s.violates(enov1.ConditionInputForbidden, "", "")
}

// TestPinnedInput has a Synthesizer pin an input. A composition with another binding gets the
// pinned object all the same, in both scopes.
func TestPinnedInput(t *testing.T) {
	server.StartManager(t, managerArgs...)
	s, policies := newStage(t), newStage(t)
	o := s.synthesizer(paint)
	policies.input("green")
	s.input("red")
	s.composition("c")
	s.painted("c", "red")

	o.Spec.Refs[0].Pinned = true
	if err := s.Update(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a pinned input needs resource.name") {
		t.Errorf("a pinned input without object: %v", err)
	}
	o.Spec.Refs[0].Resource.Namespace, o.Spec.Refs[0].Resource.Name = policies.namespace, "in"
	must(t, s.Update(t.Context(), o))
	s.painted("c", "green")
	s.violates(enov1.ConditionInputForbidden, enov1.ReasonPinned, fmt.Sprintf(`binding "in": Synthesizer %s has pinned this input, and ConfigMap %s/in is not used; remove the binding`, o.Name, s.namespace))
	s.change("c", func(c *enov1.Composition) { c.Spec.Bindings = nil })
	s.violates(enov1.ConditionInputForbidden, "", "")
	s.painted("c", "green")
}

// TestLoaderVariables sets variables that make a program run other code.
func TestLoaderVariables(t *testing.T) {
	server.StartManager(t, restricted()...)
	s := newStage(t)
	s.synthesizer(paint)
	s.input("red")
	s.composition("c")
	before := s.painted("c", "red")
	set := func(name string) {
		s.change("c", func(c *enov1.Composition) { c.Spec.SynthesisEnv = []enov1.EnvVar{{Name: name, Value: "/tmp"}} })
	}
	for _, name := range []string{"LD_PRELOAD", "PATH=/tmp"} {
		set(name)
		c := s.violates(enov1.ConditionEnvForbidden, enov1.ReasonLoaderVariable, fmt.Sprintf("variable %q", name))
		if c.Status.CurrentSynthesis.UUID != before.Status.CurrentSynthesis.UUID || c.Status.InFlightSynthesis != nil {
			t.Errorf("current %+v, in flight %+v", c.Status.CurrentSynthesis, c.Status.InFlightSynthesis)
		}
	}
	set("COLOR")
	s.violates(enov1.ConditionEnvForbidden, "", "")
	s.await("c", "it is synthesized", func(c *enov1.Composition) error {
		if c.Status.CurrentSynthesis.ObservedCompositionGeneration != c.Generation {
			return errors.New("the synthesis is of an earlier generation")
		}

		return nil
	})
}

// TestForeignDependent deletes a composition that a composition of another tenant depends on.
// Neither learns about the other.
func TestForeignDependent(t *testing.T) {
	server.StartManager(t, restricted()...)
	owner, tenant := newStage(t), newStage(t)
	for _, s := range []*stage{owner, tenant} {
		s.synthesizer(paint)
		s.input("red")
	}
	depend := func(name, on string) {
		c := &enov1.Composition{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant.namespace, Name: name},
			Spec: enov1.CompositionSpec{
				Synthesizer: enov1.SynthesizerRef{Name: tenant.namespace}, DependsOn: []enov1.CompositionDependency{{Namespace: owner.namespace, Name: on}},
				Bindings: []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: tenant.namespace, Name: "in"}}},
			},
		}
		must(t, tenant.Create(t.Context(), c))
	}
	owner.composition("first")
	owner.painted("first", "red")
	depend("second", "first")
	depend("lost", "no-such-composition")
	// One exists and the other does not, and they look the same.
	tenant.simplified("second", enov1.StatusWaitingOnDependencies, enov1.ReasonDependencyNotReady)
	tenant.simplified("lost", enov1.StatusWaitingOnDependencies, enov1.ReasonDependencyNotReady)
	first := owner.await("first", "it exists", func(*enov1.Composition) error { return nil })
	owner.deliver(first, fine)
	tenant.painted("second", "red") // the order is kept

	// With permission, it waits, and does not show for what.
	owner.change("first", func(c *enov1.Composition) {
		c.Annotations = map[string]string{enov1.AnnotationDependentsFrom: tenant.namespace}
	})
	must(t, owner.Delete(t.Context(), first))
	c := owner.simplified("first", enov1.StatusWaitingOnDependents, "")
	if by := c.Status.DependencyStatus.BlockedBy; len(by) != 1 || by[0] != (enov1.BlockedBy{Reason: enov1.ReasonDependentNotDeleted}) {
		t.Errorf("it is blocked by %+v", by)
	}
	for _, is := range c.Status.Conditions {
		if strings.Contains(is.Message, tenant.namespace) || strings.Contains(is.Message, "second") {
			t.Errorf("a condition names the other tenant: %+v", is)
		}
	}
	// Without it, it does not wait.
	owner.change("first", func(c *enov1.Composition) { c.Annotations = nil })
	owner.deliver(owner.await("first", "its objects may be deleted", func(c *enov1.Composition) error {
		if !c.DeletionStarted() {
			return errors.New("delivery was not reported")
		}

		return nil
	}), func(enov1.Manifest) enov1.ResourceState { return enov1.ResourceState{Deleted: true} })
	owner.gone("first")
}

// TestPublisherChecks runs the publisher of a pod for a synthesis that a manager without
// restrictions has begun. With restrictions, the publisher reads nothing and fails it.
func TestPublisherChecks(t *testing.T) {
	k := newKubelet(t) // it never runs the pod
	server.StartManager(t, k.args()...)
	s, victim := newStage(t), newStage(t)
	s.synthesizer(paint)
	s.input("red")
	victim.input("secret")
	must(t, s.Create(t.Context(), &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "c"},
		Spec: enov1.CompositionSpec{
			Synthesizer: enov1.SynthesizerRef{Name: s.namespace},
			Bindings:    []enov1.Binding{{Key: "in", Resource: enov1.ResourceBinding{Namespace: victim.namespace, Name: "in"}}},
		},
	}))
	c, pod := s.flying(k, "c")
	publish := exec.CommandContext(t.Context(), k.binary, "publish", "--kubeconfig="+server.Kubeconfig, "--socket=/no/such/socket", "--delivery-scope=namespace", "--input-namespaces=other")
	for _, e := range pod.Spec.Containers[1].Env {
		publish.Env = append(publish.Env, e.Name+"="+e.Value)
	}
	out, err := publish.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is not in namespace "+s.namespace) {
		t.Errorf("the publisher ends with %v: %s", err, out)
	}
	s.await("c", "the synthesis failed", func(now *enov1.Composition) error {
		in := now.Status.InFlightSynthesis
		if in == nil || in.UUID != c.Status.InFlightSynthesis.UUID || in.Canceled == nil || !strings.Contains(fmt.Sprint(in.Results), "--input-namespaces") {
			return errors.New("it is in flight, or failed for another reason")
		}

		return nil
	})
}
