package kube

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
)

// RetryOnConflict repeats what lost a race against another writer, a few times
// and with short pauses. do must read again what it decides on.
func RetryOnConflict(ctx context.Context, do func(context.Context) error) error {
	lost := func(err error) bool { return ctx.Err() == nil && LostRace(err) }

	// A retry loop treats the end of a context as its own timeout, and returns the error before
	// that, or none at all.
	var last error
	_ = retry.OnError(retry.DefaultBackoff, lost, func() error {
		last = do(ctx)

		return last
	})

	return last
}

// LostRace reports whether an error means only that another writer was faster: the object has
// changed since it was read, or exists already. Of joined errors, all must mean that.
func LostRace(err error) bool {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			return !slices.ContainsFunc(joined.Unwrap(), func(one error) bool { return !LostRace(one) })
		}
	}

	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
