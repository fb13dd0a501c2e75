package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// forbid keeps every client from changing something in the namespace, and waits until an attempt is
// denied. The returned function allows it again.
func (w *world) forbid(group, resource string, try func() error) (allow func()) {
	w.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "not now", Reason: new(metav1.StatusReasonForbidden)}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.ns}},
			},
		},
	}
	must(w, w.c.Create(w.Context(), policy))
	must(w, w.c.Create(w.Context(), binding))
	allow = func() { _ = w.c.Delete(context.WithoutCancel(w.Context()), policy) }
	w.Cleanup(allow)
	cluster.Eventually(w, resource+" cannot be changed", func() error {
		if err := try(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("it can: %w", err)
		}

		return nil
	})

	return allow
}

// value waits until the series of a selector add up to something.
func value(t *testing.T, m *cluster.Manager, selector, what string, right func(float64) bool) {
	t.Helper()
	cluster.Eventually(t, selector+" is "+what, func() error {
		all, err := m.Series(selector)
		if err != nil {
			return err
		}
		sum := 0.0
		for _, n := range all {
			sum += n
		}
		if len(all) == 0 || !right(sum) {
			return fmt.Errorf("it is %v", all)
		}

		return nil
	})
}

func is(want float64) func(float64) bool { return func(got float64) bool { return got == want } }

func positive(n float64) bool { return n > 0 }

// TestMetrics has what a manager counts of a delivery that succeeds, of one that is
// stuck, and of states that cannot be written.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	m := start(t, "--delivery-workers=7")
	value(t, m, "eno_reconciliation_controller_max_concurrent_reconciles", "7", is(7))
	for _, selector := range []string{ // a rate sees the first of them only if there was a 0 before
		`eno_resource_slice_status_update_total{result="success"}`, `eno_resource_slice_status_update_total{result="failure"}`,
		`eno_resource_slice_status_update_total{result="conflict"}`, `eno_resource_slice_status_update_total{result="gone"}`,
		`eno_write_buffer_status_update_errors_total{op="patch"}`, `eno_write_buffer_status_update_errors_total{op="get"}`,
	} {
		value(t, m, selector, "0", is(0))
	}

	w.synthesize(configMap("one", "1"), configMap("two", "1"), configMap("three", "1"))
	w.ready()
	value(t, m, `eno_reconciliation_actions_total{action="apply"}`, "3", is(3))
	value(t, m, "eno_reconciliation_errors_total", "0", is(0))
	value(t, m, "eno_write_buffer_flush_size_sum", "3: each object has one state", is(3))
	value(t, m, `eno_resource_slice_status_update_total{result="success"}`, "positive", positive)
	value(t, m, "eno_write_buffer_flush_duration_seconds_count", "positive", positive)

	w.synthesize(configMap("one", "1"), configMap("Bad_Name", "1"))
	w.fails("ConfigMap", "Bad_Name", "Invalid value")
	value(t, m, "eno_reconciliation_errors_total", "positive", positive)
	value(t, m, "eno_reconciliations_in_flight", "0", is(0))
	w.synthesize(configMap("one", "1"))
	w.ready()
	value(t, m, "eno_reconciliation_controller_workqueue_depth", "0", is(0))

	slice := &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.composition().Status.CurrentSynthesis.ResourceSlices[0].Name}}
	allow := w.forbid(enov1.GroupVersion.Group, "resourceslices/status", func() error {
		return w.c.Status().Patch(t.Context(), slice.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status": {"resources": []}}`)), client.DryRunAll)
	})
	w.synthesize(configMap("one", "2"), configMap("two", "2"))
	w.eventually("two", "a", "2")
	value(t, m, `eno_resource_slice_status_update_total{result="failure"}`, "positive", positive)
	value(t, m, `eno_write_buffer_status_update_errors_total{op="patch"}`, "positive", positive)
	value(t, m, "eno_write_buffer_depth", "2: the states of both", is(2))
	allow()
	w.ready()
	value(t, m, "eno_write_buffer_depth", "0", is(0))
	cluster.Eventually(t, "each write has a size", func() error {
		if writes, flushes := m.Sum(t, "eno_resource_slice_status_update_total"), m.Sum(t, "eno_write_buffer_flush_size_count"); writes != flushes {
			return fmt.Errorf("%v writes, and %v sizes of them", writes, flushes)
		}

		return nil
	})
}

// events are those on the composition with a reason, and with an object next to it.
func (w *world) events(reason string) []corev1.Event {
	w.Helper()
	list := &corev1.EventList{}
	must(w, w.c.List(w.Context(), list, client.InNamespace(w.ns)))

	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Reason != reason || e.InvolvedObject.Kind != enov1.CompositionKind || e.InvolvedObject.Name != w.name.Name || e.Related == nil
	})
}

// event waits for the one event with a reason. There is one, with a count of one.
func (w *world) event(reason, kind string, says ...string) {
	w.Helper()
	var found corev1.Event
	cluster.Eventually(w, "an event reports "+reason, func() error {
		all := w.events(reason)
		if len(all) == 0 {
			return errors.New("there is none")
		}
		found = all[0]

		return nil
	})
	if all := w.events(reason); len(all) != 1 || found.Series != nil {
		w.Errorf("%s was reported more than once: %+v", reason, all)
	}
	if found.Type != kind || found.Related.Kind != "Deployment" || found.Related.Name != name(0) || found.Related.Namespace != w.ns {
		w.Errorf("event %s %s about %+v", found.Type, found.Reason, found.Related)
	}
	for _, text := range append(says, "Go-http-client", "spec.template.spec.initContainers[name=base-os-bash]") {
		if !strings.Contains(found.Message, text) {
			w.Errorf("event %s has the message %q, without %q", reason, found.Message, text)
		}
	}
}

// TestOwnershipFails has the server reject a migration, and then allow it.
func TestOwnershipFails(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.split(1)
	allow := w.forbid("apps", "deployments", func() error {
		return w.c.Patch(t.Context(), w.get("apps/v1", "Deployment", name(0)), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"try": "this"}}}`)), client.DryRunAll)
	})
	w.drop(1)
	w.fails("Deployment", name(0), "not now")
	value(t, m, `eno_ownership_migrations_total{status="failure"}`, "more than one: it is tried again", func(n float64) bool { return n > 1 })
	w.event("OwnershipNotMigrated", corev1.EventTypeWarning, "could not be moved", "not now")
	cluster.Eventually(t, "the report has it", func() error {
		if got := w.composition().Status.Ownership; got == nil || got.Failed != 1 {
			return fmt.Errorf("it reports %+v", got)
		}

		return nil
	})
	allow()
	w.ready()
	w.event("OwnershipMigrated", corev1.EventTypeNormal, "eno owns what Go-http-client had")
	value(t, m, `eno_ownership_migrations_total{status="success"}`, "1", is(1))
	value(t, m, "eno_ownership_migration_duration_seconds_count", "the number of migrations", is(m.Sum(t, "eno_ownership_migrations_total")))
}

// TestOwnershipContested has another client take back what is moved, until they are left
// alone.
func TestOwnershipContested(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.split(1)
	for range 3 {
		w.drop(1)
		w.ready()
		o := w.get("apps/v1", "Deployment", name(0))
		must(t, w.c.Patch(t.Context(), o, client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"spec": {"template": {"spec": {"initContainers": [{"name": "base-os-bash", "image": "base:1", "command": ["sh"], "imagePullPolicy": "Always"}]}}}}`)),
			client.FieldOwner("Go-http-client")))
		w.synthesize(strings.ReplaceAll(named, "NAME", name(0)))
		w.ready()
	}
	w.drop(1)
	w.fails("Deployment", name(0), "Required value")
	w.event("OwnershipContested", corev1.EventTypeWarning, "Go-http-client take back what is moved to eno, and are left alone")
}
