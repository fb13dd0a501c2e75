package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// rewritePolicy rejects every write of managed fields in a namespace: the migration
// writes them as arbor, and delivery applies as eno.
const rewritePolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [UPDATE], resources: [configmaps]}]
  matchConditions: [{name: one, expression: 'object.metadata.namespace == "NAME" && request.options.?fieldManager.orValue("") == "arbor"'}]
  validations: [{expression: 'false', message: "managed fields are ours"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`

// TestRewriteRejected drops a field that another manager holds too, while a policy
// rejects only the rewrite of managed fields. The rest is applied, and the finding is
// reported.
func TestRewriteRejected(t *testing.T) {
	w := newWorld(t)
	start(t)
	must(t, w.objects.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "one"}, Data: map[string]string{"b": "1"}}, client.FieldOwner("legacy")))
	manifest := func(data string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, annotations: {%s: data}}\ndata: %s\n", enov1.AnnotationMigrateOwnership, data)
	}
	w.synthesize(manifest(`{a: "1", b: "1"}`))
	w.ready()
	for text := range strings.SplitSeq(strings.ReplaceAll(rewritePolicy, "NAME", w.ns), "---\n") {
		o := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), &o.Object))
		must(t, w.objects.Create(t.Context(), o))
		t.Cleanup(func() { _ = w.objects.Delete(context.Background(), o) })
	}
	cluster.Eventually(t, "the policy is in force", func() error {
		o := w.config("one")
		o.SetLabels(map[string]string{"probe": "x"})
		if err := w.objects.Update(t.Context(), o, client.DryRunAll, client.FieldOwner("arbor")); err == nil || !strings.Contains(err.Error(), "managed fields are ours") {
			return errors.Join(errors.New("it is not"), err)
		}

		return nil
	})

	w.synthesize(manifest(`{a: "2"}`))
	w.eventually("one", "a", "2")
	w.ready()
	if got := w.value("one", "b"); got != "1" {
		t.Errorf("another manager holds b, and it is %q", got)
	}
	cluster.Eventually(t, "the finding is reported", func() error {
		got := w.composition().Status.Ownership
		if got == nil || got.Failed != 1 || !strings.Contains(got.Objects[0].Message, "managed fields are ours") {
			return fmt.Errorf("the report is %+v", got)
		}

		return nil
	})
	cluster.Eventually(t, "an event reports which field", func() error {
		all := w.events("OwnershipNotMigrated")
		if len(all) != 1 || !strings.Contains(all[0].Message, "data.b of legacy could not be moved") {
			return fmt.Errorf("there are %+v", all)
		}

		return nil
	})
}

// TestWholeScope asks for everything in a scope: what another manager set there, and the
// manifest does not name, is removed.
func TestWholeScope(t *testing.T) {
	w := newWorld(t)
	start(t)
	for _, name := range []string{"whole", "needed"} {
		must(t, w.objects.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name, Labels: map[string]string{"theirs": "kept"}}, Data: map[string]string{"a": "1", "b": "theirs"},
		}, client.FieldOwner("legacy")))
	}
	w.synthesize(
		configMap("whole", "2", enov1.AnnotationMigrateOwnership, "data", enov1.AnnotationMigrateMode, enov1.MigrateWhole),
		configMap("needed", "2", enov1.AnnotationMigrateOwnership, "data"),
	)
	w.ready()
	got := map[string]string{}
	for _, name := range []string{"whole", "needed"} {
		got[name] = w.value(name, "a") + w.value(name, "b") + w.config(name).GetLabels()["theirs"]
	}
	if diff := cmp.Diff(map[string]string{"whole": "2kept", "needed": "2theirskept"}, got); diff != "" {
		t.Errorf("the objects are: -want, +got:\n%s", diff)
	}
	if all := w.config("whole").GetAnnotations(); all[enov1.AnnotationMigrateMode] != "" {
		t.Errorf("the setting is delivered: %v", all)
	}
}
