package fields_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/test/cluster"
)

// Workloads have controllers that write to them whenever they like. A policy
// keeps them out, so that every write is one of the test's own.
const quietPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: quiet}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps, batch], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: ["*/*"]}
  validations:
  - expression: '!request.userInfo.username.startsWith("system:serviceaccount:kube-system:")'
    message: quiet, please
`

const quietBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: quiet}
spec: {policyName: quiet, validationActions: [Deny]}
`

var once sync.Once

// quiet keeps controllers away from workloads.
func quiet(t *testing.T, c client.Client) {
	t.Helper()
	once.Do(func() {
		for _, text := range []string{quietPolicy, quietBinding} {
			o := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal([]byte(text), &o.Object))
			must(t, c.Create(t.Context(), o))
		}
		config := rest.CopyConfig(server.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:deployment-controller", Groups: []string{"system:masters"}}
		as, err := client.New(config, client.Options{})
		must(t, err)
		cluster.Eventually(t, "controllers are kept out", func() error {
			o := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal([]byte(web), &o.Object))
			o.SetNamespace("default")
			err := as.Create(t.Context(), o, client.DryRunAll)
			// Refused is also who comes before the server is ready.
			if err != nil && strings.Contains(err.Error(), "quiet, please") {
				return nil
			}

			return errors.Join(errors.New("they are not"), err)
		})
	})
}
