package kube

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// MissingNamespace returns the namespace that does not exist, if that is what an error is about.
func MissingNamespace(err error) (name string, ok bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || status.ErrStatus.Details == nil || status.ErrStatus.Details.Kind != "namespaces" {
		return "", false
	}

	return status.ErrStatus.Details.Name, true
}
