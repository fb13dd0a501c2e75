package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// releases are what was installed on a control plane.
type releases struct {
	mu sync.Mutex
	// rendered are objects by the arguments of Helm, installed those by the release.
	rendered  map[string][]*unstructured.Unstructured
	installed map[string][]*unstructured.Unstructured
}

// Install does what `helm upgrade --install` does with what a chart rendered: the namespace and the
// objects are there afterwards, and those that the release had before and has no longer are gone.
// It returns when the API server has loaded the roles.
func (u *Up) Install(ctx context.Context, release, namespace string, objects []*unstructured.Unstructured) error {
	u.releases.mu.Lock()
	defer u.releases.mu.Unlock()

	return u.install(ctx, release, namespace, objects)
}

func (u *Up) install(ctx context.Context, release, namespace string, objects []*unstructured.Unstructured) error {
	c, err := u.NewClient(nil)
	if err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, ns)); err != nil {
		return err
	}
	for _, o := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("helm"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("cannot install %s: %w", identity(o), err)
		}
	}
	key := namespace + "/" + release
	for _, o := range u.releases.installed[key] {
		if slices.ContainsFunc(objects, func(is *unstructured.Unstructured) bool { return identity(is) == identity(o) }) {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return fmt.Errorf("cannot remove %s: %w", identity(o), err)
		}
	}
	if u.releases.installed == nil {
		u.releases.installed = map[string][]*unstructured.Unstructured{}
	}
	u.releases.installed[key] = objects

	return authorized(ctx, c, objects)
}

func identity(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// authorized waits until the API server has heard of each binding and of its role.
func authorized(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	roles := map[string][]rbacv1.PolicyRule{}
	for _, o := range objects {
		role := &rbacv1.ClusterRole{}
		if !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			return err
		}
		roles[identity(o)] = role.Rules
	}
	for _, o := range objects {
		binding := &rbacv1.RoleBinding{}
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
			return err
		}
		role := &unstructured.Unstructured{}
		role.SetKind(binding.RoleRef.Kind)
		role.SetName(binding.RoleRef.Name)
		if binding.RoleRef.Kind == "Role" {
			role.SetNamespace(binding.Namespace)
		}
		for _, rule := range roles[identity(role)] {
			if err := knows(ctx, c, binding, rule); err != nil {
				return fmt.Errorf("%s: %w", identity(o), err)
			}
		}
	}

	return nil
}

// knows waits until the subjects of a binding may do what a rule allows.
func knows(ctx context.Context, c client.Client, binding *rbacv1.RoleBinding, rule rbacv1.PolicyRule) error {
	if len(rule.Resources) == 0 {
		return nil
	}
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	for _, s := range binding.Subjects {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user(s.Namespace, s.Name),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: binding.Namespace, Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Verb: rule.Verbs[0]},
		}}
		if len(rule.ResourceNames) > 0 {
			review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
		}
		err := poll("permissions are known", nil, func() error {
			asked := review.DeepCopy()
			if err := c.Create(ctx, asked); err != nil {
				return err
			}
			if !asked.Status.Allowed {
				return errors.New(asked.Status.Reason)
			}

			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// user is what the API server calls a service account.
func user(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }
