package v2alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroupStatus is what is known about a gang.
type PodGroupStatus struct {
	// Conditions of the group. Arbor writes those of type Valid and, where its
	// scheduler places the group, Scheduled and PriorityClassFound.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []PodGroupCondition `json:"conditions,omitempty"`

	// Placed is how many pods of the group are bound to a node or have
	// succeeded. Arbor's scheduler writes it.
	//
	// +optional
	Placed *int32 `json:"placed,omitempty"`

	// SubGroups says what each subgroup has, of very large groups the first
	// 1000. A group without subgroups has one entry, named default. Arbor's
	// scheduler writes it.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	SubGroups []SubGroupStatus `json:"subGroups,omitempty"`

	// SchedulingConditions has, per node pool, why the group is not placed.
	// Arbor's scheduler keeps one entry, for the node pool default, while there
	// is no room for the group.
	//
	// +optional
	SchedulingConditions []SchedulingCondition `json:"schedulingConditions,omitempty"`

	// ResourcesStatus sums what the group's pods request and have. Arbor's
	// scheduler writes it.
	//
	// +optional
	ResourcesStatus PodGroupResourcesStatus `json:"resourcesStatus,omitempty"`

	// Phase is kept for objects of older releases.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// Running is kept for objects of older releases.
	//
	// +optional
	Running int32 `json:"running,omitempty"`

	// Succeeded is kept for objects of older releases.
	//
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// Failed is kept for objects of older releases.
	//
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// Pending is kept for objects of older releases.
	//
	// +optional
	Pending int32 `json:"pending,omitempty"`
}

// SubGroupStatus is what is known about one subgroup.
type SubGroupStatus struct {
	// Name of the subgroup.
	//
	// +required
	Name string `json:"name"`

	// Pods that exist, in the subgroup and in those below it.
	//
	// +optional
	Pods int32 `json:"pods"`

	// Placed is how many of them are bound to a node or have succeeded.
	//
	// +optional
	Placed int32 `json:"placed"`

	// Min is how many must have one.
	//
	// +optional
	Min int32 `json:"min"`

	// SatisfiedSubGroups is how many of the direct children have their minimum.
	// Absent for a subgroup without children.
	//
	// +optional
	SatisfiedSubGroups *int32 `json:"satisfiedSubGroups,omitempty"`

	// MinSubGroup is how many of the direct children must have it. Absent for a
	// subgroup without children.
	//
	// +optional
	MinSubGroup *int32 `json:"minSubGroup,omitempty"`

	// Satisfied says that the subgroup has its minimum.
	//
	// +optional
	Satisfied bool `json:"satisfied"`
}

// PodGroupConditionType names one condition of a PodGroup.
type PodGroupConditionType string

// PodGroupValid is True when the group's subgroups form a tree that a
// scheduler can use and its durations can be read, and False, with the first
// violation as its message, for an object that was stored without admission.
const PodGroupValid PodGroupConditionType = "Valid"

// Reasons of the condition Valid.
const (
	// ReasonTreeValid is the reason of Valid=True.
	ReasonTreeValid = "TreeValid"
	// ReasonNameEmpty : a subgroup has no name.
	ReasonNameEmpty = "SubGroupNameEmpty"
	// ReasonNameNotLowercase : a subgroup's name has upper case letters.
	ReasonNameNotLowercase = "SubGroupNameNotLowercase"
	// ReasonParentNotLowercase : a parent's name has upper case letters.
	ReasonParentNotLowercase = "ParentNotLowercase"
	// ReasonDuplicateName : two subgroups have the same name.
	ReasonDuplicateName = "DuplicateSubGroupName"
	// ReasonParentNotFound : a subgroup names a parent that is not in the list.
	ReasonParentNotFound = "ParentNotFound"
	// ReasonCycle : subgroups are each other's ancestors.
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
	// ReasonNoSubGroup means that a pod names no subgroup, and the group has some.
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
	// ReasonBinding means that every minimum has nodes, and that the pods are
	// still being bound to them.
	ReasonBinding = "Binding"
	// ReasonPreempting means that victims are terminating to make room for the
	// group.
	ReasonPreempting = "Preempting"
	// ReasonPreemptionSearchTooLong means that the search for victims used up its
	// budget. It is retried with a larger one.
	ReasonPreemptionSearchTooLong = "PreemptionSearchTooLong"
	// ReasonPreemptionUnproven means that victims were found, but that the group
	// could not be shown to fit without them.
	ReasonPreemptionUnproven = "PreemptionUnproven"
	// ReasonPreemptionBlocked means that a victim does not terminate, or cannot
	// be evicted.
	ReasonPreemptionBlocked = "PreemptionBlocked"
	// ReasonReservationExpired means that the victims are gone, and that the
	// group could not be placed in the reserved room in time.
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

// A PodGroupCondition is one thing known about a group. It has the fields of
// metav1.Condition, all but the type optional, and transitionID, because
// objects written by other schedulers are stored here too.
type PodGroupCondition struct {
	// Type of the condition.
	//
	// +required
	Type PodGroupConditionType `json:"type"`

	// Status is True, False or Unknown.
	//
	// +optional
	Status metav1.ConditionStatus `json:"status,omitempty"`

	// ObservedGeneration is the generation that the condition speaks of.
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

	// Reason is one CamelCase word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message is for people.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// A SchedulingCondition says why a group is not placed on a node pool.
type SchedulingCondition struct {
	// Type of the condition, such as UnschedulableOnNodePool.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// NodePool that the condition speaks of.
	//
	// +optional
	NodePool string `json:"nodePool,omitempty"`

	// Reason in one word. Superseded by Reasons.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message for people. Superseded by Reasons.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Reasons, each with its details.
	//
	// +optional
	Reasons []UnschedulableExplanation `json:"reasons,omitempty"`

	// TransitionID numbers the transitions.
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

// An UnschedulableExplanation is one reason why a group is not placed.
type UnschedulableExplanation struct {
	// Reason in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message for people.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Details for programs.
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

// QuotaDetails are a queue's figures at the time of a verdict.
type QuotaDetails struct {
	// Name of the queue.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// QueueRequestedResources is what the queue asked for.
	//
	// +optional
	QueueRequestedResources corev1.ResourceList `json:"queueRequestedResources,omitempty"`

	// QueueDeservedResources is what the queue is entitled to.
	//
	// +optional
	QueueDeservedResources corev1.ResourceList `json:"queueDeservedResources,omitempty"`

	// QueueAllocatedResources is what the queue has.
	//
	// +optional
	QueueAllocatedResources corev1.ResourceList `json:"queueAllocatedResources,omitempty"`

	// QueueAllocatedNonPreemptibleResources is the part that cannot be evicted.
	//
	// +optional
	QueueAllocatedNonPreemptibleResources corev1.ResourceList `json:"queueAllocatedNonPreemptibleResources,omitempty"`

	// QueueResourceLimits is the most that the queue may have.
	//
	// +optional
	QueueResourceLimits corev1.ResourceList `json:"queueResourceLimits,omitempty"`

	// PodGroupRequestedResources is what the group's minimum asks for.
	//
	// +optional
	PodGroupRequestedResources corev1.ResourceList `json:"podGroupRequestedResources,omitempty"`

	// PodGroupRequestedNonPreemptibleResources is the part that cannot be evicted.
	//
	// +optional
	PodGroupRequestedNonPreemptibleResources corev1.ResourceList `json:"podGroupRequestedNonPreemptibleResources,omitempty"`
}

// PodGroupResourcesStatus sums the resources of a group's pods.
type PodGroupResourcesStatus struct {
	// Allocated is requested by the pods that are bound to a node.
	//
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`

	// AllocatedNonPreemptible is the part of Allocated that cannot be preempted:
	// all of it or, for a preemptible group, nothing.
	//
	// +optional
	AllocatedNonPreemptible corev1.ResourceList `json:"allocatedNonPreemptible,omitempty"`

	// Requested by all pods that have not ended.
	//
	// +optional
	Requested corev1.ResourceList `json:"requested,omitempty"`
}
