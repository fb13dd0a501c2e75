// Package policies holds Arbor's ValidatingAdmissionPolicies. The chart has copies of
// the same files.
package policies

import (
	_ "embed" // for the files
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// SubnetsName is the name of the policy that protects Subnets, and of its binding.
const SubnetsName = "arbor-subnets"

// manager is the user in the file that may delete everything.
const manager = "arbor:manager"

//go:embed subnets.yaml
var subnets string

// Subnets returns the policy that allows only the given user to delete Subnets in use,
// and its binding.
func Subnets(user string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	meta := metav1.ObjectMeta{Name: SubnetsName}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(subnets, manager, user)), &policy.Spec); err != nil {
		return nil, nil, fmt.Errorf("cannot read the policy of Subnets: %w", err)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}
	binding.Spec.PolicyName = SubnetsName
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}

	return policy, binding, nil
}
