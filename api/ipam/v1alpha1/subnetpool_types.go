package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A SubnetPool is a prefix that blocks are taken from.
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

	// +required
	Spec SubnetPoolSpec `json:"spec"`
	// +optional
	Status SubnetPoolStatus `json:"status,omitempty"`
}

// Open returns the range that Arbor has found to be this pool's own, "" if there is
// none yet. A status with the UID of another pool, from a backup for example, counts
// as none.
func (p *SubnetPool) Open() string {
	if p.Status.UID != p.UID {
		return ""
	}

	return p.Status.CIDR
}

// ParentName returns the name of the parent pool, "" for a root. A pool keeps the
// parent that it had when Arbor opened it. Before that the spec says it, or the label
// of older manifests.
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

// SubnetPoolSpec says which addresses there are and how they are handed out.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minBlockSize) || !has(self.maxBlockSize) || self.minBlockSize <= self.maxBlockSize",message="minBlockSize must not be larger than maxBlockSize"
// +kubebuilder:validation:XValidation:rule="has(self.parent) == has(oldSelf.parent) && (!has(self.parent) || self.parent == oldSelf.parent)",message="parent is immutable: the pool was taken from it"
type SubnetPoolSpec struct {
	// CIDR is the prefix, IPv4 or IPv6.
	//
	// +required
	// +kubebuilder:validation:Format=cidr
	CIDR string `json:"cidr"`

	// Parent names the pool that this one was taken from. Absent: the label
	// plexaubnet.io/parent says so, or it is a root.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	Parent string `json:"parent,omitempty"`

	// DefaultBlockSize is the prefix length that the condition Exhausted speaks
	// of. Claims say their own. Absent: 24 for IPv4, 64 for IPv6.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	DefaultBlockSize *int32 `json:"defaultBlockSize,omitempty"`

	// MinBlockSize is the shortest prefix length that a claim may ask for.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	MinBlockSize *int32 `json:"minBlockSize,omitempty"`

	// MaxBlockSize is the longest prefix length that a claim may ask for.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=128
	MaxBlockSize *int32 `json:"maxBlockSize,omitempty"`

	// Strategy chooses among free blocks: Linear takes the lowest address that
	// fits, Buddy the smallest free block that fits, which keeps large blocks
	// whole.
	//
	// +optional
	// +kubebuilder:default=Linear
	Strategy Strategy `json:"strategy,omitempty"`

	// ReuseAfter is how long a block stays unused after its release. Absent: the
	// block can be handed out again at once. Such as 30m or 24h.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(s|m|h)){1,3}$`
	ReuseAfter *metav1.Duration `json:"reuseAfter,omitempty"`
}

// Strategy chooses among free blocks.
//
// +kubebuilder:validation:Enum=Linear;Buddy
type Strategy string

// Strategies.
const (
	StrategyLinear Strategy = "Linear"
	StrategyBuddy  Strategy = "Buddy"
)

// SubnetPoolStatus is what is taken and what is left. One controller writes
// it, from counters.
type SubnetPoolStatus struct {
	// ObservedGeneration is the generation that the status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// CIDR is the range that Arbor has found to be this pool's own. Blocks are
	// handed out from the addresses that are both here and in spec.cidr. It
	// follows spec.cidr when no other pool has or wants those addresses first.
	//
	// +optional
	CIDR string `json:"cidr,omitempty"`

	// UID of this pool. A status with another UID belongs to a pool of the past
	// and counts as none.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// Parent is the name of the parent pool when cidr was written, "" for a root.
	//
	// +optional
	Parent string `json:"parent,omitempty"`

	// Lost is the generation whose spec.cidr Arbor has refused. The condition
	// Ready says why. It is removed when the reason no longer applies.
	//
	// +optional
	Lost int64 `json:"lost,omitempty"`

	// AllocatedCount is how many Subnets are taken from this pool. Child pools
	// are not among them.
	//
	// +optional
	AllocatedCount int64 `json:"allocatedCount"`

	// FreeCountBySize is, for each prefix length, how many blocks of it are
	// not taken by Subnets. Each length stands there twice, as "24" and as
	// "/24". Child pools are left out; AllocatableCountBySize counts them.
	//
	// +optional
	// +mapType=atomic
	FreeCountBySize map[string]int64 `json:"freeCountBySize,omitempty"`

	// AllocatableCountBySize is, for each prefix length, how many blocks could
	// be handed out now: neither taken by Subnets nor delegated to child
	// pools.
	//
	// +optional
	// +mapType=atomic
	AllocatableCountBySize map[string]int64 `json:"allocatableCountBySize,omitempty"`

	// AllocatedCIDRs maps blocks to cluster IDs, for the first blocks of the
	// pool only: a list of all would not fit into one object.
	//
	// +optional
	// +mapType=atomic
	AllocatedCIDRs map[string]string `json:"allocatedCIDRs,omitempty"`

	// DelegatedCount is how many child pools are taken from this pool.
	//
	// +optional
	DelegatedCount int64 `json:"delegatedCount,omitempty"`

	// UtilizationPercent is the share of addresses that are taken or
	// delegated.
	//
	// +optional
	UtilizationPercent int32 `json:"utilizationPercent"`

	// FragmentationPercent is 0 when all free space is one block, and tends to
	// 100 the more it is scattered.
	//
	// +optional
	FragmentationPercent int32 `json:"fragmentationPercent"`

	// Conditions: Ready, Exhausted.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
