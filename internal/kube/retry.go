package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
)

// RetryOnConflict repeats what lost a race against another writer, a few times
// and with short pauses. do must read again what it decides on.
func RetryOnConflict(ctx context.Context, do func(context.Context) error) error {
	lost := func(err error) bool {
		return ctx.Err() == nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err))
	}

	// What repeats it takes the end of a context for its own patience, and returns
	// the error before that, or none at all.
	var last error
	_ = retry.OnError(retry.DefaultBackoff, lost, func() error {
		last = do(ctx)

		return last
	})

	return last
}

// IgnoreStale drops the errors of a write that came too late: the object is
// gone, or was changed since it was read. Its next event tells the rest.
func IgnoreStale(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}

	return err
}
