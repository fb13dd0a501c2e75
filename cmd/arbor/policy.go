package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationv1 "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/arbor-control/arbor/api/policies"
	"github.com/arbor-control/arbor/internal/controlplane"
)

// subnetsPart is the part of the manager that allocates Subnets.
const subnetsPart = "subnets"

// protectSubnets installs the policy that allows only the manager to delete Subnets in use.
func protectSubnets(ctx context.Context, c controlplane.Cluster) error {
	client, err := admissionregistrationv1.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	policy, binding, err := policies.Subnets(c.User)
	if err != nil {
		return err
	}
	policyClient, bindingClient := client.ValidatingAdmissionPolicies(), client.ValidatingAdmissionPolicyBindings()
	if err := replace(ctx, policyClient.Get, policyClient.Create, policyClient.Update, policy); err != nil {
		return fmt.Errorf("cannot install ValidatingAdmissionPolicy %s: %w", policy.Name, err)
	}
	if err := replace(ctx, bindingClient.Get, bindingClient.Create, bindingClient.Update, binding); err != nil {
		return fmt.Errorf("cannot install ValidatingAdmissionPolicyBinding %s: %w", binding.Name, err)
	}

	return nil
}

// replace creates an object, or writes it over the one that an earlier run left.
func replace[T metav1.Object](
	ctx context.Context,
	get func(context.Context, string, metav1.GetOptions) (T, error),
	create func(context.Context, T, metav1.CreateOptions) (T, error),
	update func(context.Context, T, metav1.UpdateOptions) (T, error),
	want T,
) error {
	has, err := get(ctx, want.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = create(ctx, want, metav1.CreateOptions{})

		return err
	}
	if err != nil {
		return err
	}
	want.SetResourceVersion(has.GetResourceVersion())
	_, err = update(ctx, want, metav1.UpdateOptions{})

	return err
}
