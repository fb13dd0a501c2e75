package policies_test

import (
	"strings"
	"testing"

	"github.com/arbor-control/arbor/api/policies"
)

func TestSubnets(t *testing.T) {
	policy, binding, err := policies.Subnets("system:serviceaccount:a:b")
	if err != nil {
		t.Fatal(err)
	}
	if policy.Name != binding.Spec.PolicyName {
		t.Errorf("the binding is of policy %q, not %q", binding.Spec.PolicyName, policy.Name)
	}
	if got := policy.Spec.Variables[0].Expression; !strings.Contains(got, "== 'system:serviceaccount:a:b'") {
		t.Errorf("the manager is recognized by %q", got)
	}
	if len(policy.Spec.Validations) != 2 {
		t.Errorf("got %d validations, want 2", len(policy.Spec.Validations))
	}
}
