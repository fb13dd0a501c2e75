package v2alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroupStatus is the observed state of a gang.
type PodGroupStatus struct {
	// Conditions of the group. Arbor writes the type Valid and, if its scheduler
	// places the group, Scheduled and PriorityClassFound.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []PodGroupCondition `json:"conditions,omitempty"`

	// Placed is the number of pods of the group that are bound to a node or have
	// succeeded. Arbor's scheduler writes it.
	//
	// +optional
	Placed *int32 `json:"placed,omitempty"`

	// SubGroups is the state of each subgroup, up to the first 1000. A group
	// without subgroups has one entry, named default. Arbor's scheduler writes it.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	SubGroups []SubGroupStatus `json:"subGroups,omitempty"`

	// SchedulingConditions explains, per node pool, why the group is not placed.
	// Arbor's scheduler writes one entry, for the node pool default, while there
	// is no room for the group.
	//
	// +optional
	SchedulingConditions []SchedulingCondition `json:"schedulingConditions,omitempty"`

	// ResourcesStatus is the sum of the resources that the pods of the group
	// request and have. Arbor's scheduler writes it.
	//
	// +optional
	ResourcesStatus PodGroupResourcesStatus `json:"resourcesStatus,omitempty"`

	// Phase is preserved for objects of older releases. Arbor does not write it.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// Running is preserved for objects of older releases. Arbor does not write it.
	//
	// +optional
	Running int32 `json:"running,omitempty"`

	// Succeeded is preserved for objects of older releases. Arbor does not write it.
	//
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// Failed is preserved for objects of older releases. Arbor does not write it.
	//
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// Pending is preserved for objects of older releases. Arbor does not write it.
	//
	// +optional
	Pending int32 `json:"pending,omitempty"`
}

// SubGroupStatus is the observed state of one subgroup.
type SubGroupStatus struct {
	// Name of the subgroup.
	//
	// +required
	Name string `json:"name"`

	// Pods is the number of pods that exist in the subgroup and its descendants.
	//
	// +optional
	Pods int32 `json:"pods"`

	// Placed is the number of these pods that are bound to a node or have
	// succeeded.
	//
	// +optional
	Placed int32 `json:"placed"`

	// Min is the number of these pods that must be placed.
	//
	// +optional
	Min int32 `json:"min"`

	// SatisfiedSubGroups is the number of direct children that have their minimum.
	// Absent for a subgroup without children.
	//
	// +optional
	SatisfiedSubGroups *int32 `json:"satisfiedSubGroups,omitempty"`

	// MinSubGroup is the number of direct children that must have their minimum.
	// Absent for a subgroup without children.
	//
	// +optional
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// Satisfied is whether the subgroup has its minimum.
	//
	// +optional
	Satisfied bool `json:"satisfied"`
}

// PodGroupConditionType is the type of a condition of a PodGroup.
type PodGroupConditionType string

// PodGroupValid is True if the subgroups form a valid tree and the durations of the
// group can be parsed. It is False, with the first violation as its message, for an
// invalid object that was stored without admission.
const PodGroupValid PodGroupConditionType = "Valid"

// Reasons of the condition Valid.
const (
	// ReasonTreeValid is the reason of Valid=True.
	ReasonTreeValid = "TreeValid"
	// ReasonNameEmpty means that a subgroup has no name.
	ReasonNameEmpty = "SubGroupNameEmpty"
	// ReasonNameNotLowercase means that the name of a subgroup has upper case letters.
	ReasonNameNotLowercase = "SubGroupNameNotLowercase"
	// ReasonParentNotLowercase means that the name of a parent has upper case letters.
	ReasonParentNotLowercase = "ParentNotLowercase"
	// ReasonDuplicateName means that two subgroups have the same name.
	ReasonDuplicateName = "DuplicateSubGroupName"
	// ReasonParentNotFound means that a subgroup names a parent that is not in the list.
	ReasonParentNotFound = "ParentNotFound"
	// ReasonCycle means that the parents of subgroups form a cycle.
	ReasonCycle = "SubGroupCycle"
	// ReasonInvalidDuration means that a field is not a duration. The scheduler
	// treats the field as absent.
	ReasonInvalidDuration = "InvalidDuration"
)

// PodGroupScheduled is True when every minimum of the group is met by pods that
// are bound to a node or have succeeded. Arbor's scheduler writes it.
const PodGroupScheduled PodGroupConditionType = "Scheduled"

// Reasons of the condition Scheduled.
const (
	// ReasonScheduled is the reason of Scheduled=True.
	ReasonScheduled = "Scheduled"
	// ReasonPending means that the group has not been tried yet.
	ReasonPending = "Pending"
	// ReasonUnschedulable means that there is no room for the group's minimum.
	ReasonUnschedulable = "Unschedulable"
	// ReasonTooFewPods means that not enough pods exist for the group's minimum.
	ReasonTooFewPods = "TooFewPods"
	// ReasonInvalid means that the subgroups do not form a tree.
	ReasonInvalid = "Invalid"
	// ReasonUnknownSubGroup means that a pod names a subgroup that the group
	// does not have, or one that has subgroups of its own.
	ReasonUnknownSubGroup = "UnknownSubGroup"
	// ReasonNoSubGroup means that a pod names no subgroup, but the group has subgroups.
	ReasonNoSubGroup = "NoSubGroup"
	// ReasonSchedulersDiffer means that pods of the group name different
	// schedulers.
	ReasonSchedulersDiffer = "SchedulersDiffer"
	// ReasonTerminating means that the group is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonTopologyNotSupported means that the group requires a topology level,
	// which the scheduler cannot guarantee.
	ReasonTopologyNotSupported = "TopologyNotSupported"
	// ReasonSchedulerError means that the scheduler could not try the group. It
	// retries.
	ReasonSchedulerError = "SchedulerError"
	// ReasonBinding means that nodes were found for every minimum, and that the pods
	// are still being bound to them.
	ReasonBinding = "Binding"
	// ReasonPreempting means that victims are terminating to make room for the
	// group.
	ReasonPreempting = "Preempting"
	// ReasonPreemptionSearchTooLong means that the search for victims exceeded its
	// budget. It is retried with a larger budget.
	ReasonPreemptionSearchTooLong = "PreemptionSearchTooLong"
	// ReasonPreemptionUnproven means that victims were found, but that the group
	// could not be shown to fit without them.
	ReasonPreemptionUnproven = "PreemptionUnproven"
	// ReasonPreemptionBlocked means that a victim does not terminate, or cannot
	// be evicted.
	ReasonPreemptionBlocked = "PreemptionBlocked"
	// ReasonReservationExpired means that the victims have terminated, but that the
	// group could not be placed in the reserved capacity in time.
	ReasonReservationExpired = "ReservationExpired"
)

// PodGroupPriorityClassFound is False while the group names a PriorityClass that
// does not exist. Otherwise the condition is absent.
const PodGroupPriorityClassFound PodGroupConditionType = "PriorityClassFound"

// ReasonPriorityClassNotFound is the reason of PriorityClassFound=False.
const ReasonPriorityClassNotFound = "PriorityClassNotFound"

// UnschedulableOnNodePool is the type of the entries in
// status.schedulingConditions.
const UnschedulableOnNodePool = "UnschedulableOnNodePool"

// PodGroupCondition is a condition of a group. It has the fields of
// metav1.Condition, all optional except the type, and transitionID, because other
// schedulers write conditions too.
type PodGroupCondition struct {
	// Type of the condition.
	//
	// +required
	Type PodGroupConditionType `json:"type"`

	// Status is True, False or Unknown.
	//
	// +optional
	Status metav1.ConditionStatus `json:"status,omitempty"`

	// ObservedGeneration is the generation of the group that the condition is based
	// on.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// TransitionID is written by other schedulers.
	//
	// +optional
	TransitionID string `json:"transitionID,omitempty"`

	// LastTransitionTime is when Status last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// Reason is a CamelCase identifier for the cause of the last transition.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is a human-readable explanation.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// SchedulingCondition explains why a group is not placed on a node pool.
type SchedulingCondition struct {
	// Type of the condition, such as UnschedulableOnNodePool.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// NodePool is the name of the node pool that the condition applies to.
	//
	// +optional
	NodePool string `json:"nodePool,omitempty"`

	// Reason is a CamelCase identifier for the cause. Superseded by Reasons.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is a human-readable explanation. Superseded by Reasons.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Reasons are the causes, each with its details.
	//
	// +optional
	Reasons []UnschedulableExplanation `json:"reasons,omitempty"`

	// TransitionID is the number of the transition.
	//
	// +optional
	TransitionID string `json:"transitionID,omitempty"`

	// LastTransitionTime is when Status last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// Status is True, False or Unknown.
	//
	// +optional
	Status corev1.ConditionStatus `json:"status,omitempty"`
}

// UnschedulableExplanation is one reason why a group is not placed.
type UnschedulableExplanation struct {
	// Reason is a CamelCase identifier for the cause.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is a human-readable explanation.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Details are the figures behind the reason, for programs.
	//
	// +optional
	Details *UnschedulableExplanationDetails `json:"details,omitempty"`
}

// UnschedulableExplanationDetails are the figures behind a reason.
type UnschedulableExplanationDetails struct {
	// QueueDetails are the figures of the group's queue.
	//
	// +optional
	QueueDetails *QuotaDetails `json:"queueDetails,omitempty"`
}

// QuotaDetails are the figures of a queue when the group was tried.
type QuotaDetails struct {
	// Name of the queue.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// QueueRequestedResources are the resources that the queue requests.
	//
	// +optional
	QueueRequestedResources corev1.ResourceList `json:"queueRequestedResources,omitempty"`

	// QueueDeservedResources are the resources that the queue is entitled to.
	//
	// +optional
	QueueDeservedResources corev1.ResourceList `json:"queueDeservedResources,omitempty"`

	// QueueAllocatedResources are the resources that the queue has.
	//
	// +optional
	QueueAllocatedResources corev1.ResourceList `json:"queueAllocatedResources,omitempty"`

	// QueueAllocatedNonPreemptibleResources are the allocated resources that cannot be
	// preempted.
	//
	// +optional
	QueueAllocatedNonPreemptibleResources corev1.ResourceList `json:"queueAllocatedNonPreemptibleResources,omitempty"`

	// QueueResourceLimits are the limits of the queue.
	//
	// +optional
	QueueResourceLimits corev1.ResourceList `json:"queueResourceLimits,omitempty"`

	// PodGroupRequestedResources are the resources that the minimum of the group
	// requests.
	//
	// +optional
	PodGroupRequestedResources corev1.ResourceList `json:"podGroupRequestedResources,omitempty"`

	// PodGroupRequestedNonPreemptibleResources are the requested resources that could
	// not be preempted.
	//
	// +optional
	PodGroupRequestedNonPreemptibleResources corev1.ResourceList `json:"podGroupRequestedNonPreemptibleResources,omitempty"`
}

// PodGroupResourcesStatus is the sum of the resources of the pods of a group.
type PodGroupResourcesStatus struct {
	// Allocated are the resources requested by the pods that are bound to a node.
	//
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatedNonPreemptible are the allocated resources that cannot be preempted:
	// all of them or, for a preemptible group, none.
	//
	// +optional
	AllocatedNonPreemptible corev1.ResourceList `json:"allocatedNonPreemptible,omitempty"`

	// Requested are the resources requested by all pods that have not terminated.
	//
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
}
