package ownership

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Reason is why something was not done, in a word.
type Reason string

// Reasons to skip a migration. All is well but for Contested.
const (
	// Absent : there is no such object. Its first apply will own what it names.
	Absent Reason = "Absent"
	// NoScope : the object does not have the scope, or there is none for its kind.
	NoScope Reason = "NoScope"
	// Done : there is nothing to move.
	Done Reason = "Done"
	// NotNeeded : an apply of what is desired does all it should as things are.
	NotNeeded Reason = "NotNeeded"
	// Contested : a manager keeps taking back what is moved, and is left alone.
	Contested Reason = "Contested"
)

// Reasons to refuse one.
const (
	// Forbidden : the server does not let this client write, because of missing
	// rights or because admission denies it. Nothing was changed.
	Forbidden Reason = "Forbidden"
	// Rejected : the server takes no write of this object, because it is invalid as
	// it is, or because a policy is against it. Nothing was changed.
	Rejected Reason = "Rejected"
	// Defective : the object has entries that cannot be read.
	Defective Reason = "Defective"
	// Ignored : the server ignores the entries that it is given.
	Ignored Reason = "Ignored"
	// Untracked : the server keeps no entries of this object. It is too large,
	// something removes them, or an entry is in a version that lacks a field which
	// the object has by default.
	Untracked Reason = "Untracked"
	// Altered : the entries come back as others than were written.
	Altered Reason = "Altered"
	// Mutated : admission changes the object when only its entries are written.
	Mutated Reason = "Mutated"
	// Unsettled : the object did not become what it should by the apply. What was
	// to go is there again, the manager does not own what it applies, or somebody
	// else has lost something. If a dry run showed it, nothing was changed. If only
	// the apply did, what was moved stays moved; see [Migrator.Migrate].
	Unsettled Reason = "Unsettled"
	// Replaced : the object is not the one that the record is about.
	Replaced Reason = "Replaced"
)

// A RefusedError is an error that will be the same next time, until somebody changes
// something. Whoever reconciles reports it and goes on.
type RefusedError struct {
	Reason Reason
	Err    error
}

func (r *RefusedError) Error() string { return r.Err.Error() }

func (r *RefusedError) Unwrap() error { return r.Err }

func refuse(reason Reason, format string, args ...any) error {
	return &RefusedError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// ReasonOf is the reason of a refusal, "" for other errors.
func ReasonOf(err error) Reason {
	if r, ok := errors.AsType[*RefusedError](err); ok {
		return r.Reason
	}

	return ""
}

// explain adds what was tried, and tells a refusal from a failure.
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

// isAnswer says whether a server said no to a write, so that it is known to have
// changed nothing. Where there was no answer, or one about trouble inside of the
// server, the write may have been done.
func isAnswer(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)

	return ok && status.ErrStatus.Code >= http.StatusBadRequest && status.ErrStatus.Code < http.StatusInternalServerError
}

// isRefusedState is what the server says to an object that would be wrong, or
// that it cannot even merge.
func isRefusedState(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsInternalError(err)
}
