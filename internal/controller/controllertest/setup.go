package controllertest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// A Step reconciles once.
type Step func(context.Context) (reconcile.Result, error)

// Reconciling returns a step that reconciles one object.
func Reconciling(r reconcile.Reconciler, namespace, name string) Step {
	return func(ctx context.Context) (reconcile.Result, error) {
		return r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	}
}

// Scheme returns a scheme with the kinds that the functions add.
func Scheme(t *testing.T, adds ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range adds {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}

	return scheme
}

// SelectSubnets indexes the field that the API server can select Subnets by.
func SelectSubnets(ctx context.Context, i client.FieldIndexer) error {
	return i.IndexField(ctx, &v1alpha1.Subnet{}, "spec.poolRef", func(o client.Object) []string {
		s, ok := o.(*v1alpha1.Subnet)
		if !ok {
			return nil
		}

		return []string{s.Spec.PoolRef}
	})
}
