package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteStatus writes the status of an object, on condition that the object is as it was read, and
// reports whether it did. before and now are the status as it was and as o has it: an equal status
// is not written. A deleted object is ignored.
func WriteStatus(ctx context.Context, c client.Client, o client.Object, before, now any) (bool, error) {
	if equality.Semantic.DeepEqual(before, now) {
		return false, nil
	}
	if err := c.Status().Update(ctx, o); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("cannot write the status of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err))
	}

	return true, nil
}
