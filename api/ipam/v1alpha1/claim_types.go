package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SubnetClaim requests a block from a pool.
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

	// Spec is the requested block. It is immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: delete this claim and make another"
	Spec SubnetClaimSpec `json:"spec"`
	// Status is the most recently observed state of the claim.
	//
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

// SubnetClaimSpec is the block that a claim requests.
//
// +kubebuilder:validation:XValidation:rule="has(self.blockSize) != has(self.requestedCIDR)",message="exactly one of blockSize and requestedCIDR must be set"
type SubnetClaimSpec struct {
	// PoolRef is the name of the pool, in the same namespace.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	PoolRef string `json:"poolRef"`

	// ClusterID identifies the cluster that the block is for. A pool has at most one
	// block per cluster.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`
	ClusterID string `json:"clusterID"`

	// BlockSize is the prefix length of the requested block.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	BlockSize *int32 `json:"blockSize,omitempty"`

	// RequestedCIDR is the exact block that is requested.
	//
	// +optional
	// +kubebuilder:validation:Format=cidr
	RequestedCIDR string `json:"requestedCIDR,omitempty"`
}

// SubnetClaimStatus is the observed state of a claim.
type SubnetClaimStatus struct {
	// ObservedGeneration is the generation of the claim that the status is based on.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the claim: Pending, Bound or Error.
	//
	// +optional
	Phase ClaimPhase `json:"phase,omitempty"`

	// UID is the UID of this claim. A status with another UID comes from a backup and
	// is ignored.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// AllocatedCIDR is the allocated block, once the claim is bound.
	//
	// +optional
	AllocatedCIDR string `json:"allocatedCIDR,omitempty"`

	// SubnetRef is the name of the Subnet of that block.
	//
	// +optional
	SubnetRef string `json:"subnetRef,omitempty"`

	// Message is a human-readable explanation of the phase.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions of the claim. The type is Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SubnetPoolClaim requests a child pool that is allocated from another pool.
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

	// Spec is the requested pool. It is immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: delete this claim and make another"
	Spec SubnetPoolClaimSpec `json:"spec"`
	// Status is the most recently observed state of the claim.
	//
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

// SubnetPoolClaimSpec is the pool that a claim requests.
type SubnetPoolClaimSpec struct {
	// ParentPoolRef is the name of the pool to allocate from, in the same namespace.
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

// SubnetPoolClaimStatus is the observed state of a claim.
type SubnetPoolClaimStatus struct {
	// ObservedGeneration is the generation of the claim that the status is based on.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the claim: Pending, Bound or Error.
	//
	// +optional
	Phase ClaimPhase `json:"phase,omitempty"`

	// BoundPoolName is the name of the child pool, once it exists.
	//
	// +optional
	BoundPoolName string `json:"boundPoolName,omitempty"`

	// Message is a human-readable explanation of the phase.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions of the claim. The type is Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
