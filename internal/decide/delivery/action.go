package delivery

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A Verb is what is done about a resource.
type Verb string

// These are the actions that Decide can return for a resource.
const (
	// Nothing is returned if the object is as desired.
	Nothing Verb = "nothing"
	// Look is returned if the live object must be read before anything can be decided.
	Look Verb = "look"
	// Create creates the object, and fails if it exists. Apply creates or changes it, Replace writes
	// it as a whole, and Patch changes an object that another client creates.
	Create  Verb = "create"
	Apply   Verb = "apply"
	Replace Verb = "replace"
	Patch   Verb = "patch"
	Delete  Verb = "delete"
	// Wait is returned if another client has to act first.
	Wait Verb = "wait"
	// Leave is returned if the object is not changed, because another client owns it or because it
	// must stay.
	Leave Verb = "leave"
	// Report whether it differs, and write nothing.
	Report Verb = "report"
)

// An Action is what to do about a resource, and why.
type Action struct {
	Verb Verb
	// Foreground has a deletion wait until the object is gone.
	Foreground bool
	Reason     string
}

// A Situation is what is known about a resource.
type Situation struct {
	// Looked is true if the live object was read. Live is that object, nil if it does not exist.
	Looked bool
	Live   *unstructured.Unstructured
	// InSync is true if the object is known to be as it was applied last, by what is desired now.
	InSync bool
	// Manager is the field manager that objects are applied as, "" for the default.
	Manager string
	// Drifted is true if the object was changed since it was written last, as far as that is known
	// without reading it.
	Drifted bool
	// Patched is true if the operations of the Patch would leave Live as it is.
	Patched bool
	// Ours is true if Live is known to have been delivered, even if other field managers have taken
	// every field of it since.
	Ours bool
	// Ran is true if, in this synthesis, the Patch has deleted its target already. Removed is the
	// target that it was about to delete, if that is not known to be deleted yet.
	Ran     bool
	Removed types.UID
	// Going is true if the object is known to be terminating.
	Going bool
	// Replacing is set if it is Going because delivery has deleted it to create it again.
	Replacing bool
	// ReportOnly is true if the object was delivered in this synthesis, and later changes are
	// reported and not corrected.
	ReportOnly bool
	// Deleting is true if the composition is being deleted, and Abandoned if its objects are left
	// behind then.
	Deleting, Abandoned bool
	// Taken is true if another composition delivers this object now. Unread is a composition that
	// may deliver it and was not read yet, "" if there is none.
	Taken  bool
	Unread string
}

// Decide returns the action for a resource.
func Decide(r *Resource, s Situation) Action {
	if r.Tombstone || s.Deleting {
		return remove(r, s)
	}
	a := deliver(r, s)
	if s.ReportOnly && slices.Contains([]Verb{Create, Apply, Replace, Patch}, a.Verb) {
		a.Verb = Report
	}

	return a
}

// deliver decides about resources that must exist.
func deliver(r *Resource, s Situation) Action {
	switch {
	case r.DisableReconciliation:
		return Action{Verb: Leave, Reason: "its reconciliation is disabled"}
	case s.InSync:
		return Action{Verb: Nothing, Reason: "it was not changed"}
	case r.IsPatch():
		return patch(r, s)
	case s.Replacing:
		return Action{Verb: Wait, Reason: "the object is being deleted, and is created again when it is gone"}
	case s.Going || isGoing(s.Live):
		return Action{Verb: Wait, Reason: "another client is deleting it; it is created again when it is gone"}
	case r.DisableUpdates, r.Replace:
		return whole(r, s)
	case r.isBare():
		return bare(s)
	}

	return Action{Verb: Apply, Reason: "the cluster may not agree with it"}
}

// AfterWrite decides what follows from a write that the server has accepted. live is what the
// object became, nil if a Patch had no target.
//
// An object that is being deleted takes what was written along. It may even be gone already, if the
// write has removed its last finalizer, and its event may have come before the object was watched:
// so the caller must retry after a while, even without an event. A Patch does not create its target
// again.
func AfterWrite(r *Resource, live *unstructured.Unstructured) Action {
	if isGoing(live) && !r.IsPatch() {
		return Action{Verb: Wait, Reason: "the object is being deleted; it is created again when it is gone"}
	}

	return Action{Verb: Nothing, Reason: "the object is as it was written"}
}

// whole is about objects that are not merged.
func whole(r *Resource, s Situation) Action {
	switch {
	case !s.Looked:
		return Action{Verb: Look}
	case s.Live == nil:
		return Action{Verb: Create, Reason: "it is not there"}
	case r.DisableUpdates:
		return Action{Verb: Nothing, Reason: "it is there, and its updates are disabled"}
	case covers(s.Live.Object, r.Object.Object):
		return Action{Verb: Nothing, Reason: "it is as it should be"}
	}

	return Action{Verb: Replace, Reason: "it is another"}
}

// bare is about objects whose manifest sets no field, so that the server keeps no managed
// fields for them. To know later that such an object was delivered, it is created and not
// applied, which fails if another client has created it.
func bare(s Situation) Action {
	switch {
	case !s.Looked:
		return Action{Verb: Look}
	case s.Live == nil:
		return Action{Verb: Create, Reason: "it does not exist"}
	case IsOurs(s.Live.GetManagedFields(), s.Manager):
		return Action{Verb: Apply, Reason: "its manifest has set fields before"}
	}

	return Action{Verb: Nothing, Reason: "it exists, and its manifest sets no field"}
}

// patch decides about objects that another client creates. A Patch deletes its target once in each
// synthesis.
func patch(r *Resource, s Situation) Action {
	switch {
	case !r.Removes:
		return modify(s)
	case s.Ran:
		return Action{Verb: Nothing, Reason: "the patch has deleted the object in this synthesis"}
	case !s.Looked:
		return Action{Verb: Look}
	case s.Live == nil:
		return Action{Verb: Nothing, Reason: "the object is gone"}
	case s.Removed != "" && s.Live.GetUID() != s.Removed:
		return Action{Verb: Nothing, Reason: "the object is gone, and was created again by another client"}
	case isGoing(s.Live):
		return Action{Verb: Wait, Reason: "the object is being deleted"}
	}

	return Action{Verb: Delete, Foreground: true, Reason: "the patch deletes the object, which is not gone yet"}
}

// modify decides about a Patch that changes its target. Most writes of other clients do not concern
// the fields that the Patch sets, so the target is read first: if the operations would change
// nothing, there is nothing to correct.
func modify(s Situation) Action {
	switch {
	case s.Drifted && !s.Looked:
		return Action{Verb: Look}
	case s.Drifted && s.Patched:
		return Action{Verb: Nothing, Reason: "the object has what the patch sets"}
	}

	return Action{Verb: Patch, Reason: "the object may not agree with it"}
}

// removePatch is about a Patch whose composition is being deleted.
func removePatch(r *Resource, s Situation) Action {
	switch {
	case !s.Deleting || !r.Removes:
		return Action{Verb: Leave, Reason: "a patch is not taken back"}
	case r.DisableReconciliation || r.Orphan || s.Abandoned:
		return Action{Verb: Leave, Reason: "it is left behind"}
	case !s.Looked:
		return Action{Verb: Look}
	case s.Live == nil:
		return Action{Verb: Nothing, Reason: "the object is gone"}
	case isGoing(s.Live):
		return removing(r)
	}

	return Action{Verb: Delete, Foreground: r.Foreground, Reason: "the patch asks for it"}
}

func remove(r *Resource, s Situation) Action {
	switch {
	case r.IsPatch():
		return removePatch(r, s)
	case stays(r, s) != "":
		return Action{Verb: Leave, Reason: stays(r, s)}
	case !s.Looked:
		return Action{Verb: Look}
	case s.Live == nil:
		return Action{Verb: Nothing, Reason: "it is gone"}
	case isGoing(s.Live):
		return removing(r)
	case !s.Ours && !IsOurs(s.Live.GetManagedFields(), s.Manager):
		return Action{Verb: Leave, Reason: "another client created it"}
	}
	if other := claimedBy(s.Live.GetManagedFields(), s.Manager); other != "" {
		return Action{Verb: Leave, Reason: "another control plane delivers it, too, as field manager " + other}
	}

	return unwanted(r, s)
}

// stays is why an object is left behind whatever it is like, "" if it is not.
func stays(r *Resource, s Situation) string {
	switch {
	case r.DisableReconciliation:
		return "its reconciliation is disabled"
	case s.Deleting && r.Orphan || s.Abandoned: // a manifest that is dropped is pruned
		return "it is left behind"
	case !s.Deleting && r.Prune == enov1.PruneNever:
		return "annotation " + enov1.AnnotationPrune + " keeps it from being pruned"
	case s.Taken:
		return "another composition has it now"
	}

	return ""
}

// unwanted decides about an object that was delivered and must be deleted.
func unwanted(r *Resource, s Situation) Action {
	if s.Unread != "" {
		return Action{Verb: Wait, Reason: "it is not deleted before it is known whether composition " + s.Unread + " wants it, which could not be read yet"}
	}

	return Action{Verb: Delete, Foreground: r.Foreground, Reason: "it is no longer wanted"}
}

// removing is about an object that is on its way out.
func removing(r *Resource) Action {
	if r.Foreground {
		return Action{Verb: Wait, Reason: "it is being deleted"}
	}

	return Action{Verb: Nothing, Reason: "it is being deleted"}
}

func isGoing(live *unstructured.Unstructured) bool {
	return live != nil && live.GetDeletionTimestamp() != nil
}

// IsOurs reports whether an object was delivered as a field manager, "" for the default:
// other clients have not named a single field of it for that.
func IsOurs(entries []metav1.ManagedFieldsEntry, manager string) bool {
	manager = cmp.Or(manager, Manager)

	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager && e.Subresource == "" })
}

// claimedBy is another delivery that has applied an object, "" if there is none. Two that use the
// same field manager cannot be distinguished.
func claimedBy(entries []metav1.ManagedFieldsEntry, manager string) string {
	for _, e := range entries {
		isDelivery := e.Manager == Manager || strings.HasPrefix(e.Manager, ManagerPrefix)
		if isDelivery && e.Manager != cmp.Or(manager, Manager) && e.Subresource == "" && e.Operation == metav1.ManagedFieldsOperationApply {
			return e.Manager
		}
	}

	return ""
}

// covers reports whether an object has everything that is desired, and the same.
func covers(live, desired any) bool {
	switch want := desired.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		for key, value := range want {
			ok = ok && covers(have[key], value)
		}

		return ok
	case []any:
		have, ok := live.([]any)
		if !ok || len(have) != len(want) {
			return false
		}
		for i := range want {
			ok = ok && covers(have[i], want[i])
		}

		return ok
	}

	return live == desired
}

// Drops reports whether something that was desired before is not desired now: other field managers
// can keep it from being removed. In doubt, it returns true.
func Drops(before, now any) bool {
	switch old := before.(type) {
	case map[string]any:
		next, ok := now.(map[string]any)
		if !ok {
			return true
		}
		for key, value := range old {
			if now, ok := next[key]; !ok || Drops(value, now) {
				return true
			}
		}

		return false
	case []any:
		next, ok := now.([]any)

		return !ok || dropsItem(old, next)
	}

	return false
}

// dropsItem compares lists. Items with names are identified by them: those are the lists that more
// than one program writes. Other items are the same only if they are equal.
func dropsItem(old, next []any) bool {
	named := map[any]any{}
	for _, item := range next {
		if fields, ok := item.(map[string]any); ok && fields["name"] != nil {
			named[fields["name"]] = fields
		}
	}
	for _, item := range old {
		if fields, ok := item.(map[string]any); ok && fields["name"] != nil {
			if now, ok := named[fields["name"]]; !ok || Drops(fields, now) {
				return true
			}

			continue
		}
		if !slices.ContainsFunc(next, func(other any) bool { return covers(other, item) }) {
			return true
		}
	}

	return false
}
