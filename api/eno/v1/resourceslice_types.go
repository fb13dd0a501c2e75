package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A ResourceSlice holds manifests of one synthesis, and what has become of each. It belongs to a
// Composition if the status of the Composition names it, its controller reference has the UID of
// the Composition, and its spec has the recorded digest. Its spec cannot be changed.
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

	Spec   ResourceSliceSpec   `json:"spec,omitempty"`
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
	SynthesisUUID string     `json:"synthesisUUID,omitempty"`
	Resources     []Manifest `json:"resources,omitempty"`
}

// A Manifest is one object as JSON.
type Manifest struct {
	Manifest string `json:"manifest,omitempty"`
	// Deleted : the object was in an earlier synthesis and is to go.
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

// ResourceSliceStatus says what has become of the manifests.
type ResourceSliceStatus struct {
	// Resources are in the order of the manifests.
	Resources []ResourceState `json:"resources,omitempty"`
}

// A ResourceState is what has become of one manifest.
type ResourceState struct {
	// Reconciled : the cluster agrees with it.
	Reconciled bool `json:"reconciled,omitempty"`
	// Ready is since when the object is ready.
	Ready *metav1.Time `json:"ready,omitempty"`
	// Deleted : the object is gone, or is none of ours.
	Deleted bool `json:"deleted,omitempty"`
	// ReconciliationError is why the cluster does not agree with it.
	ReconciliationError *string `json:"reconciliationError,omitempty"`
	// UID is of the object that was delivered. It is known by that even if others
	// have taken every field of it since.
	UID types.UID `json:"uid,omitempty"`
	// Replaced is the UID of the object that was deleted in this synthesis because a field is
	// immutable, so that it could be created again. That happens once per synthesis.
	Replaced types.UID `json:"replaced,omitempty"`
}

// A ResourceSliceRef names a slice in the namespace of the composition.
type ResourceSliceRef struct {
	Name string `json:"name,omitempty"`
	// Digest is computed from the spec of the slice when it is created. A slice of this name with
	// another digest does not belong to the synthesis. It is empty for slices of Eno.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Digest string `json:"digest,omitempty"`
}
