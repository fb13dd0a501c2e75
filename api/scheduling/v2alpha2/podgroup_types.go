package v2alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Metadata by which pods join a group.
const (
	// GroupAnnotation on a pod is the name of its PodGroup, in the namespace of the pod.
	GroupAnnotation = "pod-group-name"
	// SubGroupLabel on a pod is the name of the leaf subgroup that the pod belongs to.
	SubGroupLabel = "kai.scheduler/subgroup-name"
)

// ReservationAnnotation on a PodGroup records the capacity that Arbor's scheduler has
// reserved for the group while preempted pods terminate.
const ReservationAnnotation = "arbor-control.dev/reservation"

// StalenessAnnotation on a PodGroup records the minimums that the group and its
// subgroups met before, and the times at which they fell below them. Arbor's
// scheduler writes it while they do not meet their current minimums.
const StalenessAnnotation = "arbor-control.dev/staleness"

// PodGroup is a gang of pods that are scheduled together or not at all. Its
// optional subgroups form a tree, and pods belong to the leaves of the tree.
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

	// Spec is the desired behavior of the group.
	//
	// +optional
	Spec PodGroupSpec `json:"spec,omitempty"`
	// Status is the most recently observed state of the group.
	//
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

// PodGroupSpec describes what a gang needs before any of its pods may start.
type PodGroupSpec struct {
	// MinMember is the number of pods that must be placed before any pod of the
	// group starts. 0 makes the group fully elastic. In a group with subgroups it
	// counts the pods of all subgroups, in addition to their own minimums.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinMember *int32 `json:"minMember,omitempty"`

	// MinSubGroup is the number of subgroups without a parent that must be
	// satisfied. Defaults to all of them.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// Queue is the name of the leaf queue whose quota the resources of the group
	// count against. Arbor's scheduler has no quotas.
	//
	// +optional
	Queue string `json:"queue,omitempty"`

	// PriorityClassName is the name of the PriorityClass of the whole group.
	//
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Preemptibility is whether a group of higher priority may preempt this one.
	// Defaults to preemptible if the priority is below 100, and to non-preemptible
	// otherwise.
	//
	// +optional
	Preemptibility Preemptibility `json:"preemptibility,omitempty"`

	// TopologyConstraint requires or prefers that all pods of the group run in one
	// topology domain.
	//
	// +optional
	TopologyConstraint TopologyConstraint `json:"topologyConstraint,omitempty"`

	// SubGroups divides the group. An entry may name another entry as its parent,
	// so the list forms a tree whose root is the group. Pods belong to the entries
	// without children. Names and parents must be lower case.
	//
	// +optional
	SubGroups []SubGroup `json:"subGroups,omitempty"`

	// MarkUnschedulable is whether pods of a group that does not fit are marked
	// as unschedulable.
	//
	// +optional
	MarkUnschedulable *bool `json:"markUnschedulable,omitempty"`

	// SchedulingBackoff is the number of scheduling cycles before the group is
	// reported as unschedulable on its node pool; -1 means never.
	//
	// +optional
	SchedulingBackoff *int32 `json:"schedulingBackoff,omitempty"`

	// PreemptionDelay is how long the group waits before it may preempt other
	// pods.
	//
	// +optional
	PreemptionDelay *Duration `json:"preemptionDelay,omitempty"`

	// StalenessGracePeriod is how long a running group, or an optional subgroup,
	// may stay below its minimum after it lost pods. It is then evicted. With 0 it
	// is evicted immediately, with a negative value never.
	//
	// +optional
	StalenessGracePeriod *Duration `json:"stalenessGracePeriod,omitempty"`

	// Parallelism is accepted for compatibility with manifests for older releases.
	// It has no effect.
	//
	// +optional
	Parallelism int32 `json:"parallelism,omitempty"`

	// Completions is accepted for compatibility with manifests for older releases.
	// It has no effect.
	//
	// +optional
	Completions int32 `json:"completions,omitempty"`

	// BackoffLimit is accepted for compatibility with manifests for older releases.
	// It has no effect.
	//
	// +optional
	BackoffLimit int32 `json:"backoffLimit,omitempty"`
}

// Preemptibility is whether a running group may be preempted.
//
// +kubebuilder:validation:Enum=preemptible;non-preemptible
type Preemptibility string

const (
	// Preemptible groups may be evicted for groups of higher priority.
	Preemptible Preemptibility = "preemptible"
	// NonPreemptible groups are preempted only by plain pods of system-critical priority.
	NonPreemptible Preemptibility = "non-preemptible"
)

// SubGroup is one node in the tree of a group.
type SubGroup struct {
	// Name identifies the subgroup within its group. It must be lower case:
	// "workers", not "Workers". Pods join a leaf with the label
	// kai.scheduler/subgroup-name, so the name of a leaf should be a valid label
	// value of at most 63 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Parent is the name of the parent subgroup, in lower case. Defaults to the
	// group itself.
	//
	// +optional
	Parent *string `json:"parent,omitempty"`

	// MinMember is the number of pods of this subgroup that must be placed.
	// Defaults to 1. In a subgroup with children it counts the pods of all
	// descendants, and defaults to 0.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinMember *int32 `json:"minMember,omitempty"`

	// MinSubGroup is the number of direct children that must be satisfied.
	// Defaults to all of them.
	//
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// TopologyConstraint requires or prefers that all pods of the subgroup run in
	// one topology domain.
	//
	// +optional
	TopologyConstraint *TopologyConstraint `json:"topologyConstraint,omitempty"`
}

// TopologyConstraint requires or prefers that pods run in one domain of a topology.
type TopologyConstraint struct {
	// Topology is the name of the Topology object that describes the levels.
	//
	// +optional
	Topology string `json:"topology,omitempty"`

	// RequiredTopologyLevel is the widest level that all pods must share.
	//
	// +optional
	RequiredTopologyLevel string `json:"requiredTopologyLevel,omitempty"`

	// PreferredTopologyLevel is the level that all pods share if possible.
	//
	// +optional
	PreferredTopologyLevel string `json:"preferredTopologyLevel,omitempty"`
}
