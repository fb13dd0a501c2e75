package binding

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// retryFor is how long a binding is retried while the pod keeps its place.
	retryFor   = 30 * time.Second
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// retry calls a function again as long as its error is retriable.
func retry(ctx context.Context, try func(context.Context) error) error {
	deadline := time.Now().Add(retryFor)
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := try(ctx)
		if err == nil || !retriable(err) || time.Until(deadline) < pause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait.Jitter(pause, 0.2)):
		}
	}
}

// retriable reports whether a request may succeed when it is repeated: the API
// server is overloaded, failed or did not answer.
func retriable(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code

		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	var request *url.Error

	return errors.As(err, &request) && !errors.Is(err, context.Canceled)
}
