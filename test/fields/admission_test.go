package fields_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

// Policies about ConfigMaps of one name in all namespaces.
var policies = map[string][]string{
	"denied": {`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: deny-fields}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [UPDATE], resources: [configmaps]}]
  matchConditions: [{name: one, expression: 'object.metadata.name == "denied"'}]
  validations: [{expression: 'false', message: "hands off"}]
`, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: deny-fields}
spec: {policyName: deny-fields, validationActions: [Deny]}
`},
	"mutated": {`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mutate-fields}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [UPDATE], resources: [configmaps]}]
  matchConditions: [{name: one, expression: 'object.metadata.name == "mutated"'}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"injected": "yes"}}}'}}]
`, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mutate-fields}
spec: {policyName: mutate-fields}
`},
}

// TestAdmission has policies that are against a write, or add to it. In both cases ownership stays
// as it is, and the reason is reported.
func TestAdmission(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   ownership.Reason
		// there reports whether the policy is at work, by the answer to a dry run.
		there func(*unstructured.Unstructured, error) bool
	}{
		"denied": {
			reason: "The message of a policy that denies the request is reported.", want: ownership.Rejected,
			there: func(_ *unstructured.Unstructured, err error) bool {
				return err != nil && strings.Contains(err.Error(), "hands off")
			},
		},
		"mutated": {
			reason: "What admission adds would be owned by no manager.", want: ownership.Mutated,
			there: func(o *unstructured.Unstructured, err error) bool {
				return err == nil && o.GetLabels()["injected"] != ""
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			text := strings.Replace(config("a: x"), "{name: c}", "{name: "+name+"}", 1)
			o := w.create(legacy, text)
			w.mustApply(eno, text)
			for _, policy := range policies[name] {
				p := w.object(policy)
				p.SetNamespace("")
				must(t, w.c.Create(t.Context(), p))
				t.Cleanup(func() { _ = w.c.Delete(context.Background(), p) })
			}
			before := w.get(o)
			cluster.Eventually(t, "the policy is at work", func() error {
				probe := before.DeepCopy()
				probe.SetLabels(map[string]string{"probe": "x"})
				if err := w.c.Update(t.Context(), probe, client.DryRunAll); !tc.there(probe, err) {
					return errors.Join(errors.New("it is not"), err)
				}

				return nil
			})
			m := ownership.New(w.c, ownership.Options{Mode: fields.Whole})
			result, err := m.MigrateOwnership(t.Context(), o, "data")
			if err == nil || result.Attempts != 1 || ownership.ReasonOf(err) != tc.want {
				t.Errorf("%s\nit says %v", tc.reason, err)
			}
			w.unchanged(before)
		})
	}
}
