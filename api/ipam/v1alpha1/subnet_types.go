package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Subnet is a block of addresses that is allocated from a pool. It is usable once its
// phase is Allocated.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=subnet
// +kubebuilder:selectablefield:JSONPath=`.spec.poolRef`
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidr`
// +kubebuilder:printcolumn:name="ClusterID",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.poolRef`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Subnet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the block and the cluster that it is for. It is immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: delete this Subnet and take another"
	Spec SubnetSpec `json:"spec"`
	// Status is the most recently observed state of the Subnet.
	//
	// +optional
	Status SubnetStatus `json:"status,omitempty"`
}

// SubnetList is a list of Subnets.
//
// +kubebuilder:object:root=true
type SubnetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Subnet `json:"items"`
}

// SubnetSpec is a block, its pool, and the cluster that it is for.
type SubnetSpec struct {
	// PoolRef is the name of the pool, in the same namespace.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	PoolRef string `json:"poolRef"`

	// CIDR is the block.
	//
	// +required
	// +kubebuilder:validation:Format=cidr
	CIDR string `json:"cidr"`

	// ClusterID identifies the cluster that the block is for.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9.-]{1,63}$`
	ClusterID string `json:"clusterID"`

	// ClaimRef is the claim that the block was allocated for, if any.
	//
	// +optional
	ClaimRef *ClaimReference `json:"claimRef,omitempty"`

	// Backs is the child pool that uses this block, if any. Arbor creates such
	// Subnets and deletes them after the pool.
	//
	// +optional
	Backs *PoolReference `json:"backs,omitempty"`
}

// PoolReference refers to a child pool.
type PoolReference struct {
	// Name of the pool.
	//
	// +required
	Name string `json:"name"`

	// UID of the pool, if it existed before this Subnet.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// ClaimReference refers to a claim. The UID is that of the claim which the block was
// allocated for; status.claimUID is that of the claim which has it now.
type ClaimReference struct {
	// Name of the claim.
	//
	// +required
	Name string `json:"name"`

	// UID of the claim.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// PoolUID is the UID of the pool when the block was allocated. It distinguishes
	// Subnets that Arbor created for this pool from Subnets of a backup.
	//
	// +optional
	PoolUID types.UID `json:"poolUID,omitempty"`

	// Time is when the block was allocated. The creation timestamp of a Subnet from a
	// backup is much later.
	//
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// SubnetStatus is the observed state of a Subnet.
type SubnetStatus struct {
	// Phase is Pending until the block has been checked for overlaps, then Allocated
	// or Failed.
	//
	// +optional
	Phase SubnetPhase `json:"phase,omitempty"`

	// UID is the UID of this Subnet. A status with another UID is ignored.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// ClaimUID is the UID of the claim that has this block. It differs from the
	// UID in spec.claimRef after a restore.
	//
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`

	// PoolUID is the UID of the child pool that uses this block. No other pool can
	// use it.
	//
	// +optional
	PoolUID types.UID `json:"poolUID,omitempty"`

	// AllocatedAt is when the phase became Allocated.
	//
	// +optional
	AllocatedAt *metav1.Time `json:"allocatedAt,omitempty"`

	// Conditions of the Subnet. The type is Ready, with the reason of a failure.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
