package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ResourceSlice holds manifests of one synthesis, and the state of each. It belongs to a
// Composition if the status of the Composition names it, its controller reference has the UID of
// the Composition, and its spec has the recorded digest. Its spec is immutable.
//
// +kubebuilder:validation:XValidation:rule="has(self.spec) == has(oldSelf.spec) && (!has(self.spec) || self.spec == oldSelf.spec)",message="spec is immutable: a synthesis creates new ResourceSlices"
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Composition",type=string,JSONPath=`.metadata.ownerReferences[0].name`
// +kubebuilder:printcolumn:name="Synthesis",type=string,JSONPath=`.spec.synthesisUUID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the manifests. It is immutable.
	Spec ResourceSliceSpec `json:"spec,omitempty"`
	// Status is the most recently observed state of the manifests.
	Status ResourceSliceStatus `json:"status,omitempty"`
}

// ResourceSliceList is a list of ResourceSlices.
//
// +kubebuilder:object:root=true
type ResourceSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ResourceSlice `json:"items"`
}

// ResourceSliceSpec holds manifests.
type ResourceSliceSpec struct {
	// SynthesisUUID is the UUID of the synthesis.
	SynthesisUUID string `json:"synthesisUUID,omitempty"`
	// Resources are the manifests.
	Resources []Manifest `json:"resources,omitempty"`
}

// Manifest is one object.
type Manifest struct {
	// Manifest is the object as JSON.
	Manifest string `json:"manifest,omitempty"`
	// Deleted is set if an earlier synthesis had the object. It must be deleted.
	Deleted bool `json:"deleted,omitempty"`
	// Requested is set on a deleted object if a user asked for the synthesis that dropped
	// it: by an edit of the Composition, by force or by a rollback. It is carried over to
	// later syntheses. Deletions that were not requested can be stopped by --prune-guard.
	Requested bool `json:"requested,omitempty"`
	// DroppedBy is set on a deleted object to the uuid of the synthesis that dropped it. It
	// is carried over to later syntheses. A deletion that --prune-guard stops is confirmed
	// for that synthesis only.
	DroppedBy string `json:"droppedBy,omitempty"`
}

// ResourceSliceStatus is the observed state of the manifests.
type ResourceSliceStatus struct {
	// Resources are the states of the manifests, in the same order.
	Resources []ResourceState `json:"resources,omitempty"`
}

// ResourceState is the observed state of one manifest.
type ResourceState struct {
	// Reconciled is whether the object in the cluster matches the manifest.
	Reconciled bool `json:"reconciled,omitempty"`
	// Ready is when the object became ready.
	Ready *metav1.Time `json:"ready,omitempty"`
	// Deleted is whether the object was deleted, or does not belong to the composition.
	Deleted bool `json:"deleted,omitempty"`
	// ReconciliationError is why the object does not match the manifest.
	ReconciliationError *string `json:"reconciliationError,omitempty"`
	// UID of the object that was delivered. It identifies the object even if other field
	// managers have taken over all of its fields.
	UID types.UID `json:"uid,omitempty"`
	// Replaced is the UID of the object that was deleted in this synthesis, to be recreated,
	// because a field is immutable. This happens at most once per synthesis.
	Replaced types.UID `json:"replaced,omitempty"`
}

// ResourceSliceRef refers to a ResourceSlice in the namespace of the composition.
type ResourceSliceRef struct {
	// Name of the ResourceSlice.
	Name string `json:"name,omitempty"`
	// Digest is computed from the spec of the slice when it is created. A slice of this name with
	// another digest does not belong to the synthesis. It is empty for slices of Eno.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Digest string `json:"digest,omitempty"`
}
