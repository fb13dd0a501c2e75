package tenancy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A Denial is why the account of a Composition does not write or delete an object.
type Denial struct {
	// Reason and Message are those of the condition AccessDenied.
	Reason, Message string
}

// An Attempt is what was tried for an object.
type Attempt struct {
	Account Account
	// Namespace is that of the object, "" if it is cluster-scoped.
	Namespace string
	// Deletes is set if the object must be deleted, and Prunes if that is because the
	// Synthesizer no longer returns it.
	Deletes, Prunes bool
	// Unsent is set if the request was not sent because it had no account.
	Unsent bool
}

// Deny returns why an attempt failed if the reason is a missing permission, and whether it is.
// Other errors with the code 403, of quotas and admission webhooks for example, are not
// about permissions.
func (a Attempt) Deny(err error) (Denial, bool) {
	reason := a.reason(err)
	if reason == "" {
		return Denial{}, false
	}
	fix := a.fix(reason)
	if a.Deletes {
		reason = enov1.ReasonDeletionForbidden
	}

	if a.Unsent {
		return Denial{Reason: reason, Message: "the Composition has no ServiceAccount to deliver as: " + fix}, true
	}

	return Denial{Reason: reason, Message: fmt.Sprintf("%s; %s", err, fix)}, true
}

// reason returns the reason of a failed write, "" if no permission is missing.
func (a Attempt) reason(err error) string {
	// The text of an error may not show values of a Secret, which can be any part of it.
	text := err.Error()
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		text = status.ErrStatus.Message
	}
	switch {
	case a.Unsent:
		return enov1.ReasonNoServiceAccount
	case !apierrors.IsForbidden(err):
		return ""
	case strings.Contains(text, " cannot impersonate"):
		return enov1.ReasonImpersonationForbidden
	// `User "…" cannot patch resource`, or `user "…" (groups=…) is attempting to grant RBAC permissions not currently held`.
	case !strings.Contains(text, `ser "`+a.Account.Username()+`"`):
		return ""
	case a.Namespace != a.Account.Namespace:
		return enov1.ReasonOutOfScope
	}

	return enov1.ReasonWriteForbidden
}

// fix returns what a user can do.
func (a Attempt) fix(reason string) string {
	var fix string
	switch reason {
	case enov1.ReasonNoServiceAccount:
		fix = "set spec.serviceAccountName, or start the manager with --default-service-account"
	case enov1.ReasonImpersonationForbidden:
		fix = fmt.Sprintf("give the manager permission to impersonate serviceaccounts in namespace %s (chart: delivery.tenantNamespaces)", a.Account.Namespace)
	case enov1.ReasonOutOfScope:
		fix = fmt.Sprintf("the object is not in namespace %s: remove it from the output of the Synthesizer, or give %s the permission", a.Account.Namespace, a.Account)
	default:
		fix = fmt.Sprintf("give %s the permission", a.Account)
	}
	switch {
	case a.Prunes:
		fix += fmt.Sprintf(", name another ServiceAccount in spec.serviceAccountName, or set the annotation %s: %s to leave the object behind", enov1.AnnotationPrune, enov1.PruneNever)
	case a.Deletes:
		fix += fmt.Sprintf(", name another ServiceAccount in spec.serviceAccountName, or set the annotation %s: %s to leave the objects behind", enov1.AnnotationDeletionStrategy, enov1.DeletionOrphan)
	}

	return fix
}

// reasons are those of denials, the one first that explains the most.
var reasons = []string{
	enov1.ReasonNoServiceAccount, enov1.ReasonImpersonationForbidden, enov1.ReasonDeletionForbidden, enov1.ReasonOutOfScope, enov1.ReasonWriteForbidden,
}

// Summarize returns the denial that explains the most, with the number of the rest. It is the zero
// value if there is none.
func Summarize(all []Denial) Denial {
	if len(all) == 0 {
		return Denial{}
	}
	worst := slices.MinFunc(all, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(slices.Index(reasons, a.Reason), slices.Index(reasons, b.Reason)), cmp.Compare(a.Message, b.Message))
	})
	if n := len(all) - 1; n > 0 {
		worst.Message = fmt.Sprintf("%s (and %d more)", worst.Message, n)
	}

	return worst
}

// A Remainder is an object that must be deleted and that the account may not delete.
type Remainder struct {
	// Recorded is set if the Composition is known to have written the object, or has a Patch that
	// deletes it.
	Recorded bool
	// Ending is set if the namespace of the object is terminating or does not exist.
	Ending bool
	// HomeEnding is set if the namespace of the Composition is terminating.
	HomeEnding bool
	// Orphan is set if the Composition is being deleted and its annotation orphans objects. A
	// manifest with another strategy takes precedence only as long as its object can be deleted.
	Orphan bool
	// Waited is how long the Composition and its namespace have been deleted for, and Grace is how
	// long it holds up its own namespace.
	Waited, Grace time.Duration
}

// Leave returns why an object is left as it is, so that the Composition can be deleted, and ""
// if the deletion waits for the permission.
func (r Remainder) Leave() string {
	switch {
	case !r.Recorded:
		return "the Composition has never written it"
	case r.Ending:
		return "the namespace controller deletes it with its namespace"
	case r.Orphan:
		return fmt.Sprintf("the Composition has the annotation %s: %s", enov1.AnnotationDeletionStrategy, enov1.DeletionOrphan)
	case r.HomeEnding && r.Waited >= r.Grace:
		return fmt.Sprintf("the namespace of the Composition is terminating, and the object could not be deleted in %s", r.Grace)
	}

	return ""
}
