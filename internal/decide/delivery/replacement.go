package delivery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// immutability are parts of the messages by which API servers reject the change of a field that
// cannot be changed, in lower case. They are those of the validation of Kubernetes; CRDs mostly
// report that a value is immutable.
var immutability = []string{
	"immutable",          // almost all
	"updates to ",        // StatefulSet, CSIStorageCapacity: "updates to ... are forbidden"
	"may not change",     // Service, Pod
	"may not be changed", // PriorityClass
	"cannot change",      // RoleBinding: "cannot change roleRef"
	"can not be unset",   // Service: "primary clusterIP can not be unset"
}

// irreplaceable are the kinds that are never deleted in order to be created again: with
// them, data or other objects would be deleted.
var irreplaceable = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"},
	{Kind: "PersistentVolume"},
	{Kind: "Namespace"},
	{Group: "apiextensions.k8s.io", Kind: crdKind},
}

// IsImmutable reports whether the API server has rejected a write because it changes a field
// that is immutable. There may be other reasons, too.
func IsImmutable(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return false
	}

	return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool {
		if c.Type != metav1.CauseTypeFieldValueInvalid && c.Type != metav1.CauseTypeForbidden {
			return false
		}
		text := strings.ToLower(c.Message)

		return slices.ContainsFunc(immutability, func(part string) bool { return strings.Contains(text, part) })
	})
}

// MayReplace reports whether the object may have to be deleted in order to create it again.
// Overrides may ask for that, too.
func (r *Resource) MayReplace() bool {
	if r.Tombstone || r.IsPatch() {
		return false
	}

	return r.ReplaceOnConflict || slices.ContainsFunc(r.overrides, func(o override) bool {
		return strings.HasPrefix(o.path.String(), "self.metadata.annotations")
	})
}

// A Rejection is what is known about an object whose change was rejected because a field is
// immutable.
type Rejection struct {
	// Live is the object, nil if it does not exist any more.
	Live *unstructured.Unstructured
	// Ours is set if Live is known to have been delivered.
	Ours bool
	// Manager is the field manager that objects are applied as, "" for the default.
	Manager string
	// Replaced is the object that was deleted for a replacement in this synthesis, "" if
	// none was.
	Replaced types.UID
	// Sharer is another composition that wants the object, too, "" if there is none. Unread
	// is one of which this is not known yet.
	Sharer, Unread string
}

// DecideReplacement decides whether an object is deleted so that it can be created again. The verb is
// Delete, Wait, or Leave with the reason why it is not.
func DecideReplacement(r *Resource, s Rejection) Action {
	switch {
	case r.IsPatch():
		return Action{Verb: Leave, Reason: unused("is not used for a Patch, whose target other clients create")}
	case s.Live == nil:
		return Action{Verb: Wait, Reason: "the object is gone and is created again"}
	case isGoing(s.Live):
		return Action{Verb: Wait, Reason: replacing(s.Live)}
	}
	if reason := cmp.Or(irreplaceableAs(r, s), claimed(s)); reason != "" {
		return Action{Verb: Leave, Reason: unused(reason)}
	}
	if s.Unread != "" {
		return Action{Verb: Wait, Reason: "the object is not deleted and created again before it is known whether composition " + s.Unread + " wants it, too, which could not be read yet"}
	}

	return Action{Verb: Delete, Reason: replacing(s.Live)}
}

// unused describes why the annotation is not used.
func unused(reason string) string {
	return "annotation " + enov1.AnnotationReplaceOnConflict + " " + reason
}

// irreplaceableAs is why an object must not be deleted, whichever delivery has it, "" if it may.
func irreplaceableAs(r *Resource, s Rejection) string {
	switch {
	case slices.Contains(irreplaceable, r.GVK.GroupKind()):
		return fmt.Sprintf("is not used for a %s, because data or other objects would be deleted with it; undo the change, or delete the object yourself", r.GVK.Kind)
	case isStatefulSet(r) && selectorOf(r.Object) != selectorOf(s.Live):
		return "is not used for a StatefulSet whose spec.selector changes: its pods are kept, the new StatefulSet could not adopt them, and they would occupy the names of its pods; undo the change, give the manifest another name, or delete the StatefulSet with its pods yourself"
	case s.Replaced != "" && s.Replaced != s.Live.GetUID():
		return "is not used again: the object was replaced in this synthesis already, which happens once; another client or a webhook may set the field"
	}

	return ""
}

// claimed is why an object is not only ours to delete, "" if it is.
func claimed(s Rejection) string {
	other := claimedBy(s.Live.GetManagedFields(), s.Manager)
	switch {
	case !s.Ours && !IsOurs(s.Live.GetManagedFields(), s.Manager):
		return fmt.Sprintf("is not used for an object that was not delivered by %s; delete the object yourself, or give the manifest another name", cmp.Or(s.Manager, Manager))
	case other != "":
		return fmt.Sprintf("is not used for an object that another control plane delivers, too, as field manager %s; have only one of them deliver it", other)
	case s.Sharer != "":
		return fmt.Sprintf("is not used for an object that composition %s wants, too; remove it from one of them", s.Sharer)
	}

	return ""
}

// replacing describes an object that is being deleted for its replacement.
func replacing(live *unstructured.Unstructured) string {
	text := "the object is being deleted, and is created again when it is gone"
	if all := live.GetFinalizers(); len(all) > 0 {
		text += "; it waits for the finalizers " + strings.Join(all, ", ")
	}

	return text
}

func isStatefulSet(r *Resource) bool {
	return r.GVK.Group == "apps" && r.GVK.Kind == "StatefulSet"
}

// selectorOf is the label selector of a workload in the form of kubectl, whichever way it is
// written, "" if it has none that can be used.
func selectorOf(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	found, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	parsed := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, parsed); err != nil {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil {
		return ""
	}

	return selector.String()
}

// Propagation is how an object is deleted that is created again. Pods of a StatefulSet are
// kept: the next one adopts them, because it has the same selector.
func Propagation(r *Resource) metav1.DeletionPropagation {
	if isStatefulSet(r) {
		return metav1.DeletePropagationOrphan
	}

	return metav1.DeletePropagationBackground
}
