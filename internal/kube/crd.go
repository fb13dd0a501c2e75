package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/arbor-control/arbor/api/names"
)

// crdPatience is how long a CRD may take to be served.
const crdPatience = 30 * time.Second

// EnsureCRD makes sure that a kind is served as want describes it.
//
// A CRD that Arbor installed is updated; a missing one is installed, unless install is false. A CRD
// that another program installed is never changed: it is used if it serves the version that Arbor
// needs, and an error otherwise.
func EnsureCRD(ctx context.Context, c client.Client, want *apiextensionsv1.CustomResourceDefinition, install bool) error {
	have := &apiextensionsv1.CustomResourceDefinition{}
	err := c.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err) && !install:
		return fmt.Errorf("CustomResourceDefinition %s is not installed: install it, or run with --crds=install", want.Name)
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("cannot read CustomResourceDefinition %s: %w", want.Name, err)
	case err == nil && have.Labels[names.ManagedByLabel] != names.Arbor:
		log.FromContext(ctx).Info("Using a CustomResourceDefinition that somebody else installed", "crd", want.Name)

		return compatible(have, want)
	case !install:
		return compatible(have, want)
	}

	if err := applyCRD(ctx, c, want); err != nil {
		return fmt.Errorf("cannot install CustomResourceDefinition %s: %w", want.Name, err)
	}

	return awaitCRD(ctx, c, want.Name)
}

func applyCRD(ctx context.Context, c client.Client, want *apiextensionsv1.CustomResourceDefinition) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[names.ManagedByLabel] = names.Arbor
	u.SetLabels(labels)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")

	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(names.Arbor))
}

func awaitCRD(ctx context.Context, c client.Client, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, crdPatience, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, cond := range crd.Status.Conditions {
			if cond.Type == apiextensionsv1.NamesAccepted && cond.Status == apiextensionsv1.ConditionFalse {
				return false, errors.New(cond.Message)
			}
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}

		return false, nil
	})
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %s is not served: %w", name, err)
	}

	return nil
}

// neededFields are fields that the safety of allocation depends on. The API server drops fields
// that a CRD does not have, so an older one must not be used.
var neededFields = map[string][]string{
	"subnetpools.plexaubnet.io": {"status.cidr", "status.lost", "status.parent", "status.uid"},
	"subnets.plexaubnet.io":     {"spec.backs", "status.claimUID", "status.poolUID", "status.uid"},
}

// compatible returns an error unless have serves every version that want serves, with a
// status where want has one, and with the needed fields.
func compatible(have, want *apiextensionsv1.CustomResourceDefinition) error {
	served := map[string]apiextensionsv1.CustomResourceDefinitionVersion{}
	for _, v := range have.Spec.Versions {
		if v.Served {
			served[v.Name] = v
		}
	}
	for _, w := range want.Spec.Versions {
		h, ok := served[w.Name]
		if !ok {
			return fmt.Errorf("CustomResourceDefinition %s, which somebody else installed, does not serve version %s: upgrade it, or switch this part off with --controllers", have.Name, w.Name)
		}
		if hasStatus(w) && !hasStatus(h) {
			return fmt.Errorf("CustomResourceDefinition %s, which somebody else installed, has no status in version %s: upgrade it, or switch this part off with --controllers", have.Name, w.Name)
		}
		for _, field := range neededFields[have.Name] {
			if !hasField(h, field) {
				return fmt.Errorf("CustomResourceDefinition %s has no %s in version %s: upgrade it, or switch this part off with --controllers", have.Name, field, w.Name)
			}
		}
	}

	return nil
}

// hasField reports whether a version has a field.
func hasField(v apiextensionsv1.CustomResourceDefinitionVersion, path string) bool {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return false
	}
	at := *v.Schema.OpenAPIV3Schema
	for name := range strings.SplitSeq(path, ".") {
		next, ok := at.Properties[name]
		if !ok {
			return false
		}
		at = next
	}

	return true
}

func hasStatus(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Subresources != nil && v.Subresources.Status != nil
}
