package eno_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestLastCorrection has other clients change and delete objects. The composition reports
// the last one, and a storm does not cost a write for each.
func TestLastCorrection(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("one", "1"), configMap("two", "1"))
	if c := e.ready("app"); c.Status.LastCorrection != nil {
		t.Errorf("there is a correction: %+v", c.Status.LastCorrection)
	}
	e.write("one", "2")
	e.value("one", "1")
	last := func(name, by string, deleted bool) {
		t.Helper()
		e.await("app", "reports the correction of "+name, func(c *enov1.Composition) error {
			if l := c.Status.LastCorrection; l == nil || l.Kind != "ConfigMap" || l.Name != name || l.Namespace != e.namespace || l.Manager != by || l.Deleted != deleted || l.Time.IsZero() {
				return fmt.Errorf("it is %+v", l)
			}

			return nil
		})
	}
	last("one", "someone", false)
	if out := e.arbor(0, "delivery", "app"); !strings.Contains(out, "ConfigMap "+e.namespace+"/one, changed by someone, corrected") {
		t.Errorf("arbor delivery does not show it:\n%s", out)
	}
	version := e.ready("app").ResourceVersion
	for i := range 4 {
		e.write("one", fmt.Sprint("storm", i))
		e.value("one", "1")
	}
	if now := e.ready("app"); now.ResourceVersion != version {
		t.Errorf("four corrections within seconds were written: %+v", now.Status.LastCorrection)
	}
	must(t, e.Delete(t.Context(), e.config("two")))
	e.value("two", "1")
	last("two", "", true)
}

// mutation changes a value of a ConfigMap whenever another client than eno writes it, as a
// mutating webhook does.
const mutation = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [UPDATE], resources: [configmaps]}]
  matchConditions: [{name: one, expression: 'object.metadata.namespace == "NAME" && request.options.?fieldManager.orValue("") != "eno"'}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{data: {"a": "mutated"}}'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME}
`

// TestMutatedWhileOthersWrite has admission change a value of ours while another client
// writes something else. The API server leaves the field to us, so this is not seen as drift;
// an object with a reconcile interval is corrected, and another one by the next synthesis.
func TestMutatedWhileOthersWrite(t *testing.T) {
	e := newEnv(t)
	e.compose("app", nil, configMap("plain", "1"), configMap("interval", "1", enov1.AnnotationReconcileInterval, "2s"))
	e.ready("app")
	for text := range strings.SplitSeq(strings.ReplaceAll(mutation, "NAME", e.namespace), "---\n") {
		o := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(text), &o.Object))
		must(t, e.Create(t.Context(), o))
		t.Cleanup(func() { _ = e.Delete(context.Background(), o) })
	}
	touch := func(name, value string) {
		o := e.config(name)
		must(t, e.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"b":"`+value+`"}}`)), client.FieldOwner("someone")))
	}
	cluster.Eventually(t, "the policy is in force", func() error {
		touch("plain", strconv.FormatInt(time.Now().UnixNano(), 10))
		if e.config("plain").Data["a"] != "mutated" {
			return errors.New("nothing was mutated")
		}

		return nil
	})
	touch("interval", "x")
	e.value("interval", "1")
	if o := e.config("plain"); o.Data["a"] != "mutated" {
		t.Errorf("what is not seen as drift was corrected: %v; say so in docs/concepts/delivery.md", o.Data)
	}
	e.change("app", configMap("plain", "2"), configMap("interval", "1", enov1.AnnotationReconcileInterval, "2s"))
	e.value("plain", "2")
}
