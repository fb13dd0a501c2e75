package podgroup

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// A Guard is the choice of PriorityClasses that only users with the permission
// to use them may name in a PodGroup. Kubernetes checks the PriorityClass of a
// pod, by quota, and knows nothing about that of a PodGroup.
type Guard string

const (
	// GuardSystem protects the classes of Kubernetes itself: system-*.
	GuardSystem Guard = "system"
	// GuardAll protects all classes.
	GuardAll Guard = "all"
	// GuardOff protects none.
	GuardOff Guard = "off"
)

// ReasonPriorityClassForbidden is the reason to reject a PodGroup whose author
// may not use the PriorityClass that it names.
const ReasonPriorityClassForbidden = "PriorityClassForbidden"

const (
	// systemPrefix begins the names that Kubernetes keeps for itself.
	systemPrefix = "system-"

	classField = "spec.priorityClassName"
)

// Protects reports whether a PodGroup may name a class only if its author has
// the permission to use it.
func (g Guard) Protects(class string) bool {
	switch g {
	case GuardOff:
		return false
	case GuardAll:
		return true
	default:
		return strings.HasPrefix(class, systemPrefix)
	}
}

// NewClass returns the PriorityClass that a change makes the group name, "" if
// it leaves the class as it is or removes it. before is nil on creation.
func NewClass(before, after *v2alpha2.PodGroup) string {
	if before != nil && before.Spec.PriorityClassName == after.Spec.PriorityClassName {
		return ""
	}

	return after.Spec.PriorityClassName
}

// ClassForbidden returns the problem of a group whose author may not use the
// PriorityClass that it names. The message includes the fix, because
// controllers log nothing else.
func ClassForbidden(pg *v2alpha2.PodGroup, user string) verdict.Problem {
	class := pg.Spec.PriorityClassName

	return verdict.Problem{
		Reason:    ReasonPriorityClassForbidden,
		Field:     classField,
		Value:     class,
		Forbidden: true,
		Message: fmt.Sprintf("PodGroup %s/%s: %s: user %q is not allowed to use PriorityClass %q; "+
			"to allow it, bind a ClusterRole with the rule "+
			"{apiGroups: [scheduling.k8s.io], resources: [priorityclasses], resourceNames: [%s], verbs: [use]} "+
			"to that user with a ClusterRoleBinding, or name another class",
			pg.Namespace, cmp.Or(pg.Name, pg.GenerateName), classField, user, class, class),
	}
}

// ClassNotFound returns the warning about a PriorityClass that does not exist.
func ClassNotFound(class string) verdict.Warning {
	return verdict.Warning{
		Field: classField,
		Message: fmt.Sprintf("PriorityClass %q does not exist, so the group has the lowest priority of its pods; "+
			"create the class or correct the name", verdict.Shorten(class, shownName)),
	}
}
