package v2alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How pods join a group.
const (
	// GroupAnnotation of a pod names its PodGroup, in the pod's namespace.
	GroupAnnotation = "pod-group-name"
	// SubGroupLabel of a pod names the leaf that it belongs to.
	SubGroupLabel = "kai.scheduler/subgroup-name"
)

// ReservationAnnotation of a PodGroup records the room that Arbor's scheduler has
// reserved for it while preempted pods terminate.
const ReservationAnnotation = "arbor-control.dev/reservation"

// StalenessAnnotation of a PodGroup has the minimums that it and its subgroups
// met before, and since when they are below them. Arbor's scheduler writes it
// while they do not meet their present minimums.
const StalenessAnnotation = "arbor-control.dev/staleness"

// A PodGroup is a gang of pods that are placed together or not at all. Its
// subgroups, if it has any, form a tree, and pods belong to the leaves.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pg
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.spec.queue`
// +kubebuilder:printcolumn:name="MinMember",type=integer,JSONPath=`.spec.minMember`
// +kubebuilder:printcolumn:name="Placed",type=integer,JSONPath=`.status.placed`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Priority",type=string,JSONPath=`.spec.priorityClassName`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].message`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodGroup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec PodGroupSpec `json:"spec,omitempty"`
	// +optional
	Status PodGroupStatus `json:"status,omitempty"`
}

// PodGroupList is a list of PodGroups.
//
// +kubebuilder:object:root=true
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodGroup `json:"items"`
}

// PodGroupSpec says what a gang needs before any of its pods may start.
type PodGroupSpec struct {
	// MinMember is how many pods of the group must be placed before any of
	// them starts. 0 makes the group fully elastic. In a group with subgroups
	// it counts the pods of all of them, beside their own minimums.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinMember *int32 `json:"minMember,omitempty"`

	// MinSubGroup is how many of the subgroups without a parent must be
	// satisfied. Absent: all of them.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// Queue names the leaf queue that pays for the group's resources.
	//
	// +optional
	Queue string `json:"queue,omitempty"`

	// PriorityClassName names the PriorityClass of the whole group.
	//
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Preemptibility says whether a more important group may take this one's
	// place. Absent: preemptible when the priority is below 100.
	//
	// +optional
	Preemptibility Preemptibility `json:"preemptibility,omitempty"`

	// TopologyConstraint keeps the whole group close together.
	//
	// +optional
	TopologyConstraint TopologyConstraint `json:"topologyConstraint,omitempty"`

	// SubGroups divides the group. Each entry may name another as its parent,
	// which makes the list a forest under the group itself; pods belong to the
	// entries without children. Names and parents are lower case.
	//
	// +optional
	SubGroups []SubGroup `json:"subGroups,omitempty"`

	// MarkUnschedulable says whether pods of a group that does not fit are
	// marked as unschedulable.
	//
	// +optional
	MarkUnschedulable *bool `json:"markUnschedulable,omitempty"`

	// SchedulingBackoff is the number of scheduling cycles before the group is
	// reported as unschedulable on its node pool; -1 means never.
	//
	// +optional
	SchedulingBackoff *int32 `json:"schedulingBackoff,omitempty"`

	// PreemptionDelay is how long the group waits before it may evict others.
	//
	// +optional
	PreemptionDelay *Duration `json:"preemptionDelay,omitempty"`

	// StalenessGracePeriod is how long a running group, or an optional subgroup,
	// may stay below its minimum after it lost pods before it is evicted. 0: it
	// is evicted at once. Negative: it is never evicted.
	//
	// +optional
	StalenessGracePeriod *Duration `json:"stalenessGracePeriod,omitempty"`

	// Parallelism is kept for manifests of older releases; it has no effect.
	//
	// +optional
	Parallelism int32 `json:"parallelism,omitempty"`

	// Completions is kept for manifests of older releases; it has no effect.
	//
	// +optional
	Completions int32 `json:"completions,omitempty"`

	// BackoffLimit is kept for manifests of older releases; it has no effect.
	//
	// +optional
	BackoffLimit int32 `json:"backoffLimit,omitempty"`
}

// Preemptibility says whether a running group may be evicted for another.
//
// +kubebuilder:validation:Enum=preemptible;non-preemptible
type Preemptibility string

const (
	// Preemptible groups may be evicted for more important ones.
	Preemptible Preemptibility = "preemptible"
	// NonPreemptible groups run to their end once they are placed.
	NonPreemptible Preemptibility = "non-preemptible"
)

// A SubGroup is one node of a group's tree.
type SubGroup struct {
	// Name identifies the subgroup within its group. It must be lower case:
	// "workers", not "Workers". Pods join a leaf by the label
	// kai.scheduler/subgroup-name, so the name of a leaf should be a label
	// value of at most 63 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Parent names the subgroup above this one, in lower case. Absent: the
	// group itself.
	//
	// +optional
	Parent *string `json:"parent,omitempty"`

	// MinMember is how many pods of this subgroup must be placed; absent: 1. In
	// a subgroup with children it counts the pods below; absent: 0.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinMember *int32 `json:"minMember,omitempty"`

	// MinSubGroup is how many of the direct children must be satisfied.
	// Absent: all of them.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// TopologyConstraint keeps this subgroup close together.
	//
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// A TopologyConstraint keeps pods inside one domain of a topology.
type TopologyConstraint struct {
	// Topology names the Topology object that describes the cluster's layout.
	//
	// +optional
	Topology string `json:"topology,omitempty"`

	// RequiredTopologyLevel is the widest level that all pods must share.
	//
	// +optional
	RequiredTopologyLevel string `json:"requiredTopologyLevel,omitempty"`

	// PreferredTopologyLevel is the level that pods share when they can.
	//
	// +optional
	PreferredTopologyLevel string `json:"preferredTopologyLevel,omitempty"`
}
