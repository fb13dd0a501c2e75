package policies_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

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

// A Subnet of a claim or a child pool can be deleted only while it holds no block.
func TestSubnetsDeletion(t *testing.T) {
	type object = map[string]any
	claimed, backing := object{"claimRef": object{"name": "team"}}, object{"backs": object{"name": "lab"}}
	named := object{"name": "s"}
	owned := object{"name": "s", "ownerReferences": []any{object{"kind": "SubnetClaim"}}}
	phase := func(phase string) object { return object{"phase": phase} }

	cases := map[string]struct {
		reason  string
		subnet  object
		user    string
		allowed bool
	}{
		"Allocated":        {reason: "Its addresses are in use.", subnet: object{"metadata": named, "spec": claimed, "status": phase("Allocated")}},
		"AllocatedBacking": {reason: "So are those of a child pool.", subnet: object{"metadata": named, "spec": backing, "status": phase("Allocated")}},
		"AllocatedByHand":  {reason: "Without a claim and a child pool it belongs to its user.", subnet: object{"metadata": named, "spec": object{}, "status": phase("Allocated")}, allowed: true},
		"Manager":          {reason: "The manager releases blocks.", subnet: object{"metadata": named, "spec": claimed, "status": phase("Allocated")}, user: "manager", allowed: true},
		"Failed":           {reason: "It never got its block.", subnet: object{"metadata": named, "spec": claimed, "status": phase("Failed")}, allowed: true},
		"NoStatus":         {reason: "A Subnet that was never judged holds no block.", subnet: object{"metadata": named, "spec": claimed}, allowed: true},
		"NoPhase":          {reason: "An empty status is no status.", subnet: object{"metadata": named, "spec": claimed, "status": object{}}, allowed: true},
		"Pending":          {reason: "A Subnet that waits for its pool holds no block.", subnet: object{"metadata": named, "spec": claimed, "status": phase("Pending")}, allowed: true},
		"NoStatusBacking":  {reason: "No pool can be opened in it.", subnet: object{"metadata": named, "spec": backing}, allowed: true},
		"NoStatusOwned":    {reason: "The garbage collector must not delete Subnets of an old backup before they are judged.", subnet: object{"metadata": owned, "spec": claimed}},
		"GarbageCollected": {reason: "It has read the owner references before they were removed.", subnet: object{"metadata": named, "spec": claimed}, user: "system:serviceaccount:kube-system:generic-garbage-collector"},
		"UnknownPhase":     {reason: "A phase of a later version may mean that it is in use.", subnet: object{"metadata": named, "spec": claimed, "status": phase("Moved")}},
	}

	policy, _, err := policies.Subnets("manager")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			variables := object{}
			in := object{
				"oldObject": tc.subnet, "namespaceObject": object{"metadata": object{}},
				"request": object{"userInfo": object{"username": tc.user}}, "variables": variables,
			}
			for _, v := range policy.Spec.Variables {
				variables[v.Name] = evaluate(t, v.Expression, in)
			}
			allowed := true
			for _, v := range policy.Spec.Validations {
				valid, _ := evaluate(t, v.Expression, in).(bool)
				allowed = allowed && valid
			}
			if allowed != tc.allowed {
				t.Errorf("%s Allowed: got %t, want %t", tc.reason, allowed, tc.allowed)
			}
		})
	}
}

// evaluate returns the value of a CEL expression.
func evaluate(t *testing.T, expression string, in map[string]any) any {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("oldObject", cel.DynType), cel.Variable("namespaceObject", cel.DynType), cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(in)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}

	return value.Value()
}
