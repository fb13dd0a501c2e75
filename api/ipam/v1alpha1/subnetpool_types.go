package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SubnetPool is a CIDR from which blocks are allocated.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=subnetpool
// +kubebuilder:printcolumn:name="CIDR",type=string,JSONPath=`.spec.cidr`
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.strategy`
// +kubebuilder:printcolumn:name="Allocated",type=integer,JSONPath=`.status.allocatedCount`
// +kubebuilder:printcolumn:name="Used",type=integer,JSONPath=`.status.utilizationPercent`
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parent`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SubnetPool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the pool.
	//
	// +required
	Spec SubnetPoolSpec `json:"spec"`
	// Status is the most recently observed state of the pool.
	//
	// +optional
	Status SubnetPoolStatus `json:"status,omitempty"`
}

// Open returns the CIDR that Arbor has accepted for this pool, "" if there is none yet.
// It ignores a status with the UID of another pool, for example from a backup.
func (p *SubnetPool) Open() string {
	if p.Status.UID != p.UID {
		return ""
	}

	return p.Status.CIDR
}

// ParentName returns the name of the parent pool, "" for a root. A pool keeps the
// parent that it had when Arbor accepted its CIDR. Before that, the parent is in the
// spec, or in the label that older manifests have.
func (p *SubnetPool) ParentName() string {
	if p.Open() != "" {
		return p.Status.Parent
	}
	if p.Spec.Parent != "" {
		return p.Spec.Parent
	}

	return p.Labels[ParentLabel]
}

// SubnetPoolList is a list of SubnetPools.
//
// +kubebuilder:object:root=true
type SubnetPoolList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SubnetPool `json:"items"`
}

// SubnetPoolSpec is the CIDR of a pool and how blocks are allocated from it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minBlockSize) || !has(self.maxBlockSize) || self.minBlockSize <= self.maxBlockSize",message="minBlockSize must not be larger than maxBlockSize"
// +kubebuilder:validation:XValidation:rule="has(self.parent) == has(oldSelf.parent) && (!has(self.parent) || self.parent == oldSelf.parent)",message="parent is immutable: the pool was taken from it"
type SubnetPoolSpec struct {
	// CIDR is the address range of the pool, IPv4 or IPv6.
	//
	// +required
	// +kubebuilder:validation:Format=cidr
	CIDR string `json:"cidr"`

	// Parent is the name of the pool from which this one is allocated. If absent,
	// the label plexaubnet.io/parent names it. A pool without both is a root.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	Parent string `json:"parent,omitempty"`

	// DefaultBlockSize is the prefix length that the condition Exhausted is about.
	// Claims specify their own block size. Defaults to 24 for IPv4, 64 for IPv6.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	DefaultBlockSize *int32 `json:"defaultBlockSize,omitempty"`

	// MinBlockSize is the shortest prefix length that a claim may request.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	MinBlockSize *int32 `json:"minBlockSize,omitempty"`

	// MaxBlockSize is the longest prefix length that a claim may request.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	MaxBlockSize *int32 `json:"maxBlockSize,omitempty"`

	// Strategy selects among free blocks. Linear uses the lowest address that fits.
	// Buddy uses the smallest free block that fits, which keeps large blocks
	// unfragmented.
	//
	// +optional
	// +kubebuilder:default=Linear
	Strategy Strategy `json:"strategy,omitempty"`

	// ReuseAfter is how long a block stays unused after its release, for example 30m
	// or 24h. If absent, the block can be allocated again immediately.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(s|m|h)){1,3}$`
	ReuseAfter *metav1.Duration `json:"reuseAfter,omitempty"`
}

// Strategy selects among free blocks.
//
// +kubebuilder:validation:Enum=Linear;Buddy
type Strategy string

// Strategies.
const (
	StrategyLinear Strategy = "Linear"
	StrategyBuddy  Strategy = "Buddy"
)

// SubnetPoolStatus is the observed state of a pool: what is allocated and what is
// free.
type SubnetPoolStatus struct {
	// ObservedGeneration is the generation of the pool that the status is based on.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// CIDR is the range that Arbor has accepted for this pool. Blocks are allocated
	// from the addresses that are both in this range and in spec.cidr. It is set to
	// spec.cidr once no other pool has those addresses or requested them earlier.
	//
	// +optional
	CIDR string `json:"cidr,omitempty"`

	// UID is the UID of this pool. A status with another UID belongs to a former
	// pool, for example from a backup, and is ignored.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// Parent is the name of the parent pool when cidr was written, "" for a root.
	//
	// +optional
	Parent string `json:"parent,omitempty"`

	// Lost is the generation whose spec.cidr Arbor has rejected. The condition Ready
	// has the reason. It is removed when the reason no longer applies.
	//
	// +optional
	Lost int64 `json:"lost,omitempty"`

	// AllocatedCount is the number of Subnets that are allocated from this pool.
	// Child pools are not counted.
	//
	// +optional
	AllocatedCount int64 `json:"allocatedCount"`

	// FreeCountBySize is, for each prefix length, the number of blocks that no
	// Subnet occupies. Each length has two keys, "24" and "/24". Child pools are
	// ignored; AllocatableCountBySize takes them into account.
	//
	// +optional
	// +mapType=atomic
	FreeCountBySize map[string]int64 `json:"freeCountBySize,omitempty"`

	// AllocatableCountBySize is, for each prefix length, the number of blocks that
	// can be allocated now: neither occupied by Subnets nor delegated to child
	// pools.
	//
	// +optional
	// +mapType=atomic
	AllocatableCountBySize map[string]int64 `json:"allocatableCountBySize,omitempty"`

	// AllocatedCIDRs maps blocks to cluster IDs. It has only the first blocks of the
	// pool, since all of them would exceed the size limit of an object.
	//
	// +optional
	// +mapType=atomic
	AllocatedCIDRs map[string]string `json:"allocatedCIDRs,omitempty"`

	// DelegatedCount is the number of child pools that are allocated from this pool.
	//
	// +optional
	DelegatedCount int64 `json:"delegatedCount,omitempty"`

	// UtilizationPercent is the percentage of addresses that are allocated or
	// delegated.
	//
	// +optional
	UtilizationPercent int32 `json:"utilizationPercent"`

	// FragmentationPercent is 0 if all free space is one block, and approaches 100
	// the more fragmented it is.
	//
	// +optional
	FragmentationPercent int32 `json:"fragmentationPercent"`

	// Conditions of the pool. The types are Ready and Exhausted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
