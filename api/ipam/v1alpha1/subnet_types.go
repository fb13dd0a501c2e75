package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Subnet is a block of addresses taken from a pool.
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

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: delete this Subnet and take another"
	Spec SubnetSpec `json:"spec"`
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

// SubnetSpec says which block was taken, from where, and for whom.
type SubnetSpec struct {
	// PoolRef names the pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	PoolRef string `json:"poolRef"`

	// CIDR is the block.
	//
	// +required
	// +kubebuilder:validation:Format=cidr
	CIDR string `json:"cidr"`

	// ClusterID says who has it.
	//
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9.-]{1,63}$`
	ClusterID string `json:"clusterID"`

	// ClaimRef is the claim that it was taken for, if any.
	//
	// +optional
	ClaimRef *ClaimReference `json:"claimRef,omitempty"`

	// Backs is the child pool that is made of this block, if any. Arbor creates
	// such Subnets; they stay until that pool is gone.
	//
	// +optional
	Backs *PoolReference `json:"backs,omitempty"`
}

// A PoolReference names a child pool.
type PoolReference struct {
	// Name of the pool.
	//
	// +required
	Name string `json:"name"`

	// UID of the pool, if it was there before this Subnet.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// A ClaimReference names a claim. The UID is that of the claim which the block was
// taken for; status.claimUID says which claim has it now.
type ClaimReference struct {
	// Name of the claim.
	//
	// +required
	Name string `json:"name"`

	// UID of the claim.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// PoolUID is the UID of the pool when the block was taken. It tells Subnets
	// that Arbor created for this pool from those of a backup.
	//
	// +optional
	PoolUID types.UID `json:"poolUID,omitempty"`

	// Time is when the block was taken. The Subnet of a backup is created much
	// later than that.
	//
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// SubnetStatus is the verdict on a block.
type SubnetStatus struct {
	// Phase is Pending until the block has been judged.
	//
	// +optional
	Phase SubnetPhase `json:"phase,omitempty"`

	// UID of this Subnet. A status with another UID counts as none.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// ClaimUID is the UID of the claim that has this block. It differs from the
	// UID in spec.claimRef after a restore.
	//
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`

	// PoolUID is the UID of the child pool that is made of this block. Only that
	// pool can be opened in it.
	//
	// +optional
	PoolUID types.UID `json:"poolUID,omitempty"`

	// AllocatedAt is when it was found good.
	//
	// +optional
	AllocatedAt *metav1.Time `json:"allocatedAt,omitempty"`

	// Conditions: Ready, with the reason of a failure.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
