package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Find reads an object by name into o, from a cache or from the API server. It is nil if
// there is none. An object of a cache belongs to the cache; do not change it.
func Find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r client.Reader, o P, namespace, name string) (P, error) {
	if name == "" {
		return nil, nil
	}
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.")

		return nil, fmt.Errorf("cannot read %s %s/%s: %w", kind, namespace, name, err)
	}

	return o, nil
}
