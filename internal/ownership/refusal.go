package ownership

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Reason is a CamelCase identifier for why something was not done.
type Reason string

// Reasons to skip a migration. Only Contested is a problem.
const (
	// Absent means that there is no such object. Its first apply will own what it names.
	Absent Reason = "Absent"
	// NoScope means that the object does not have the scope, or there is none for its kind.
	NoScope Reason = "NoScope"
	// Done means that there is nothing to move.
	Done Reason = "Done"
	// NotNeeded means that an apply of the desired state does all it should without a migration.
	NotNeeded Reason = "NotNeeded"
	// Contested means that a manager keeps taking fields back. They are not moved again.
	Contested Reason = "Contested"
)

// Reasons to reject a migration.
const (
	// Forbidden means that the server denies the write, because of missing permissions or by
	// admission. Nothing was changed.
	Forbidden Reason = "Forbidden"
	// Rejected means that the server rejects every write of this object, because it is invalid as
	// it is, or because of a policy. Nothing was changed.
	Rejected Reason = "Rejected"
	// Defective means that the object has entries that cannot be parsed.
	Defective Reason = "Defective"
	// Ignored means that the server ignores the entries that are written.
	Ignored Reason = "Ignored"
	// Untracked means that the server keeps no entries of this object. It is too large, something
	// removes them, or an entry is in a version that lacks a field which the object has by default.
	Untracked Reason = "Untracked"
	// Altered means that the entries differ from what was written.
	Altered Reason = "Altered"
	// Mutated means that admission changes the object when only its entries are written.
	Mutated Reason = "Mutated"
	// Unsettled means that the apply did not have the intended result. A removed field is there
	// again, the manager does not own what it applies, or another manager has lost something. If a
	// dry run showed it, nothing was changed. If only the apply did, what was moved stays moved;
	// see [Migrator.Migrate].
	Unsettled Reason = "Unsettled"
	// Replaced means that the object is not the one that the record is about.
	Replaced Reason = "Replaced"
)

// A RefusedError is an error that a retry does not change, until the object or the cluster is
// changed. A controller reports it and continues.
type RefusedError struct {
	Reason Reason
	Err    error
}

func (r *RefusedError) Error() string { return r.Err.Error() }

func (r *RefusedError) Unwrap() error { return r.Err }

func refuse(reason Reason, format string, args ...any) error {
	return &RefusedError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// ReasonOf is the reason of a RefusedError, "" for other errors.
func ReasonOf(err error) Reason {
	if r, ok := errors.AsType[*RefusedError](err); ok {
		return r.Reason
	}

	return ""
}

// explain adds what was tried, and distinguishes a rejection from a failure.
func explain(err error, doing string) error {
	if apierrors.IsForbidden(err) {
		return refuse(Forbidden, "cannot %s, and changed nothing: %w", doing, err)
	}

	return fmt.Errorf("cannot %s: %w", doing, err)
}

// A staleError is about an object that was changed since the caller decided what to
// apply to it. To read it again is of no use: the caller has to decide again.
type staleError struct{ object, version string }

func (e *staleError) Error() string {
	return fmt.Sprintf("%s was changed: what is desired was made for resourceVersion %s", e.object, e.version)
}

// Status makes it a conflict for apierrors.
func (e *staleError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: e.Error()}
}

// IsStale reports whether nothing was done because the object does not have the
// Version of the request.
func IsStale(err error) bool {
	_, ok := errors.AsType[*staleError](err)

	return ok
}

// OnlyRewrite reports whether an error is about the rewrite of managed fields alone, so
// that an apply without it may work: admission or missing permissions are against it.
func OnlyRewrite(err error) bool {
	reason := ReasonOf(err)

	return reason == Mutated || reason == Rejected || reason == Forbidden
}

// isConflict is about races that are worth another try.
func isConflict(err error) bool { return apierrors.IsConflict(err) && !IsStale(err) }

// isAnswer reports whether the server rejected a write, so that it is known to have changed
// nothing. Without a response, or with one about an internal error, the write may have been done.
func isAnswer(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)

	return ok && status.ErrStatus.Code >= http.StatusBadRequest && status.ErrStatus.Code < http.StatusInternalServerError
}

// isRefusedState reports whether the server rejected an object because it would be invalid, or
// cannot be merged.
func isRefusedState(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsInternalError(err)
}
