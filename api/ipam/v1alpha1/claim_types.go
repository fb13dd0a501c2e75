package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A SubnetClaim asks for a block of a pool.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=subnetclaim
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="ClusterID",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.poolRef`
// +kubebuilder:printcolumn:name="Allocated",type=string,JSONPath=`.status.allocatedCIDR`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type SubnetClaim struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: delete this claim and make another"
	Spec SubnetClaimSpec `json:"spec"`
	// +optional
	Status SubnetClaimStatus `json:"status,omitempty"`
}

// SubnetClaimList is a list of SubnetClaims.
//
// +kubebuilder:object:root=true
type SubnetClaimList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SubnetClaim `json:"items"`
}

// SubnetClaimSpec says what is wanted.
//
// +kubebuilder:validation:XValidation:rule="has(self.blockSize) != has(self.requestedCIDR)",message="exactly one of blockSize and requestedCIDR must be set"
type SubnetClaimSpec struct {
	// PoolRef names the pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	PoolRef string `json:"poolRef"`

	// ClusterID says which cluster the block is for. A pool has at most one block
	// for each.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`
	ClusterID string `json:"clusterID"`

	// BlockSize is the prefix length of the wanted block.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	BlockSize *int32 `json:"blockSize,omitempty"`

	// RequestedCIDR is the very block that is wanted.
	//
	// +optional
	// +kubebuilder:validation:Format=cidr
	RequestedCIDR string `json:"requestedCIDR,omitempty"`
}

// SubnetClaimStatus is what the claim got.
type SubnetClaimStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the claim.
	//
	// +optional
	Phase ClaimPhase `json:"phase,omitempty"`

	// UID of this claim. A status with another UID comes from a backup and counts as
	// none.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// AllocatedCIDR is the block, once it is bound.
	//
	// +optional
	AllocatedCIDR string `json:"allocatedCIDR,omitempty"`

	// SubnetRef names the Subnet of that block.
	//
	// +optional
	SubnetRef string `json:"subnetRef,omitempty"`

	// Message is for people.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A SubnetPoolClaim asks for a pool of its own, taken from another.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=subnetpc
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parentPoolRef`
// +kubebuilder:printcolumn:name="BoundPool",type=string,JSONPath=`.status.boundPoolName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type SubnetPoolClaim struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: delete this claim and make another"
	Spec SubnetPoolClaimSpec `json:"spec"`
	// +optional
	Status SubnetPoolClaimStatus `json:"status,omitempty"`
}

// SubnetPoolClaimList is a list of SubnetPoolClaims.
//
// +kubebuilder:object:root=true
type SubnetPoolClaimList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SubnetPoolClaim `json:"items"`
}

// SubnetPoolClaimSpec says what is wanted.
type SubnetPoolClaimSpec struct {
	// ParentPoolRef names the pool to take from.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	ParentPoolRef string `json:"parentPoolRef"`

	// DesiredBlockSize is the prefix length of the new pool.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	DesiredBlockSize int32 `json:"desiredBlockSize"`
}

// SubnetPoolClaimStatus is what the claim got.
type SubnetPoolClaimStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the claim.
	//
	// +optional
	Phase ClaimPhase `json:"phase,omitempty"`

	// BoundPoolName is the pool, once it is there.
	//
	// +optional
	BoundPoolName string `json:"boundPoolName,omitempty"`

	// Message is for people.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
