package synthesis

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A finder reads the compositions that another one depends on, for one decision. A decision for which
// one could not be read is not valid: err is the first error.
type finder struct {
	ctx    context.Context //nolint:containedctx // a finder lives as long as one decision
	client client.Reader
	err    error
}

// composition returns a composition, or nil if it does not exist or cannot be read.
func (f *finder) composition(namespace, name string) *enov1.Composition {
	c := &enov1.Composition{}
	err := f.client.Get(f.ctx, client.ObjectKey{Namespace: namespace, Name: name}, c)
	if err == nil {
		return c
	}
	if f.err == nil && !apierrors.IsNotFound(err) {
		f.err = fmt.Errorf("cannot read Composition %s/%s: %w", namespace, name, err)
	}

	return nil
}
