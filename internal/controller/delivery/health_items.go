package delivery

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

const (
	// reasonNotApplied is that of an object whose turn has not come.
	reasonNotApplied = "NotApplied"
	// reasonNotDelivered is that of an object that cannot be delivered, and of a manifest
	// that cannot be read.
	reasonNotDelivered = "NotDelivered"
)

// A countedItem is what the health of an item depends on besides its object.
type countedItem struct {
	id   decide.Identity
	kind schema.GroupKind
	name string
	// applied is true if the cluster agrees with the manifest, or its error is passed
	// over. runs is true if workers may work on it.
	applied, passedOver, runs bool
	err                       string
}

// counted are the items of a view that have health: the manifests of objects, which are
// delivered here.
func (v *view) counted() []countedItem {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]countedItem, 0, len(v.items))
	for _, it := range v.items {
		if it.elsewhere || !hidden(it) && (it.Tombstone || it.IsPatch() || it.DisableReconciliation) {
			continue
		}
		one := countedItem{applied: it.state.Reconciled}
		if it.state.ReconciliationError != nil {
			one.err, one.passedOver = *it.state.ReconciliationError, it.state.Reconciled
		}
		if hidden(it) {
			if it.state.Deleted {
				continue // a tombstone of an object that has a manifest, too
			}
			one.name, one.passedOver = fmt.Sprintf("manifest %d of ResourceSlice %s", it.index, it.slice.Name), it.state.Reconciled
		} else {
			one.id, one.kind, one.name, one.runs = it.Identity, it.GVK.GroupKind(), it.String(), v.mayRun(it)
		}
		all = append(all, one)
	}

	return all
}

// unjudged is the condition of a composition whose objects are not judged, nil if they are.
func (v *view) unjudged() *metav1.Condition {
	switch {
	case v.deleting:
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonDeleting, Message: "the composition is being deleted"}
	case v.suspended != "":
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonSuspended, Message: "the objects are not judged while the composition is suspended"}
	case v.shared:
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonShared, Message: "several deliveries share the composition, and none of them knows all objects"}
	default:
		return nil
	}
}

// isForeign reports whether other deliveries deliver all manifests that can be read. One of
// them may know all objects, and writes the condition Healthy then.
func (v *view) isForeign() bool { return v.elsewhere || v.shared && len(v.byID) == 0 }
