package model

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

const (
	// ReasonNotApplied is that of an object whose turn has not come.
	ReasonNotApplied = "NotApplied"
	// ReasonNotDelivered is that of an object that cannot be delivered, and of a manifest
	// that cannot be read.
	ReasonNotDelivered = "NotDelivered"
)

// A HealthItem is what the health of an item depends on besides its object.
type HealthItem struct {
	ID   decide.Identity
	Kind schema.GroupKind
	Name string
	// Applied is true if the cluster agrees with the manifest, or its error is passed
	// over. runs is true if workers may work on it.
	Applied, PassedOver, Runs bool
	Err                       string
}

// HealthItems are the items of a view that have health: the manifests of objects, which are
// delivered here.
func (v *Composition) HealthItems() []HealthItem {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]HealthItem, 0, len(v.Items))
	for _, it := range v.Items {
		if it.Foreign || !IsInvalid(it) && (it.Tombstone || it.IsPatch() || it.DisableReconciliation) {
			continue
		}
		one := HealthItem{Applied: it.State.Reconciled}
		if it.State.ReconciliationError != nil {
			one.Err, one.PassedOver = *it.State.ReconciliationError, it.State.Reconciled
		}
		if IsInvalid(it) {
			if it.State.Deleted {
				continue // a tombstone of an object that has a manifest, too
			}
			one.Name, one.PassedOver = fmt.Sprintf("manifest %d of ResourceSlice %s", it.Index, it.Slice.Name), it.State.Reconciled
		} else {
			one.ID, one.Kind, one.Name, one.Runs = it.Identity, it.GVK.GroupKind(), it.String(), v.mayRun(it)
		}
		all = append(all, one)
	}

	return all
}

// UnknownHealth is the condition of a composition whose objects are not evaluated, nil if they are.
func (v *Composition) UnknownHealth() *metav1.Condition {
	switch {
	case v.Deleting:
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonDeleting, Message: "the composition is being deleted"}
	case v.Suspended != "":
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonSuspended, Message: "the health of objects is not evaluated while the composition is suspended"}
	case v.Shared:
		return &metav1.Condition{Type: enov1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: enov1.ReasonShared, Message: "several deliveries share the composition, and none of them knows all objects"}
	default:
		return nil
	}
}

// IsForeign reports whether other deliveries deliver all manifests that can be read. One of
// them may know all objects, and writes the condition Healthy then.
func (v *Composition) IsForeign() bool { return v.Foreign || v.Shared && len(v.ByID) == 0 }
