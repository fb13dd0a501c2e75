package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Composition runs a Synthesizer with inputs, and delivers the resulting manifests.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Synthesizer",type=string,JSONPath=`.spec.synthesizer.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.simplified.status`
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.simplified.error`
// +kubebuilder:printcolumn:name="Health",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Healthy")].reason`
type Composition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the Synthesizer and its inputs.
	Spec CompositionSpec `json:"spec,omitempty"`
	// Status is the most recently observed state of the composition.
	Status CompositionStatus `json:"status,omitempty"`
}

// CompositionList is a list of Compositions.
//
// +kubebuilder:object:root=true
type CompositionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Composition `json:"items"`
}

// CompositionSpec is a Synthesizer and its inputs. Any change of it triggers a new
// synthesis.
type CompositionSpec struct {
	// Synthesizer is the Synthesizer to run.
	Synthesizer SynthesizerRef `json:"synthesizer,omitempty"`
	// Bindings are the objects that are passed to the Synthesizer as inputs. Keys that
	// the Synthesizer does not have are ignored. With --delivery-scope=namespace, the
	// objects must be in the namespace of the composition or in one of
	// --input-namespaces.
	Bindings []Binding `json:"bindings,omitempty"`
	// SynthesisEnv are environment variables for the Synthesizer. With
	// --delivery-scope=namespace, variables that make programs load other code, such as
	// LD_PRELOAD and PATH, are rejected.
	//
	// +kubebuilder:validation:MaxItems:=500
	SynthesisEnv []EnvVar `json:"synthesisEnv,omitempty"`
	// DependsOn are compositions that must be ready before this one is synthesized,
	// and that are deleted after this one. With --delivery-scope=namespace, a composition
	// in another namespace waits for this one only if it has the annotation
	// arbor-control.dev/dependents-from.
	//
	// +kubebuilder:validation:MaxItems:=50
	DependsOn []CompositionDependency `json:"dependsOn,omitempty"`
	// ServiceAccountName is the name of a ServiceAccount in the namespace of the
	// composition. If the manager runs with --delivery-scope=namespace, it impersonates
	// this account to read, write and delete the objects of the composition. Defaults to
	// --default-service-account. It may be changed while the composition is being deleted.
	//
	// +kubebuilder:validation:MaxLength:=253
	// +kubebuilder:validation:Pattern:=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// Binding binds an object to an input of a Synthesizer.
type Binding struct {
	// Key of the input.
	Key string `json:"key"`
	// Resource is the object.
	Resource ResourceBinding `json:"resource"`
}

// ResourceBinding refers to an object. Its kind is that of the input.
type ResourceBinding struct {
	// Name of the object.
	Name string `json:"name"`
	// Namespace of the object. Empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
}

// EnvVar is an environment variable.
type EnvVar struct {
	// Name of the variable.
	//
	// +kubebuilder:validation:MaxLength:=100
	Name string `json:"name"`
	// Value of the variable.
	Value string `json:"value,omitempty"`
}

// CompositionDependency refers to another composition.
type CompositionDependency struct {
	// Name of the composition.
	Name string `json:"name,omitempty"`
	// Namespace of the composition. Defaults to the namespace of the dependent.
	Namespace string `json:"namespace,omitempty"`
}

// CompositionStatus is the observed state of a composition. A synthesis is first in
// flight, then current, then previous.
type CompositionStatus struct {
	// Simplified summarizes the status for printer columns.
	Simplified *SimplifiedStatus `json:"simplified,omitempty"`
	// InFlightSynthesis is the synthesis that is running or waiting to run.
	InFlightSynthesis *Synthesis `json:"inFlightSynthesis,omitempty"`
	// CurrentSynthesis is the latest completed synthesis. Its manifests are delivered.
	CurrentSynthesis *Synthesis `json:"currentSynthesis,omitempty"`
	// PreviousSynthesis is the synthesis before the current one.
	PreviousSynthesis *Synthesis `json:"previousSynthesis,omitempty"`
	// InputRevisions are the latest observed revisions of the inputs.
	InputRevisions []InputRevisions `json:"inputRevisions,omitempty"`
	// DependencyStatus reports what the composition waits for.
	DependencyStatus *DependencyStatus `json:"dependencyStatus,omitempty"`
	// History are syntheses before the previous one whose manifests are still stored,
	// newest first.
	History []Synthesis `json:"history,omitempty"`
	// Ownership reports the objects of which fields belong, or belonged, to other field
	// managers.
	Ownership *OwnershipReport `json:"ownership,omitempty"`
	// LastCorrection is the last time that delivery corrected an object which another client
	// had changed or deleted. It is written at most once in ten seconds.
	LastCorrection *Correction `json:"lastCorrection,omitempty"`
	// Conditions of the composition, with the reason and message of what is stuck.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SimplifiedStatus is a summary of the status.
type SimplifiedStatus struct {
	// Status is one CamelCase identifier, such as Synthesizing, Reconciling or Ready.
	Status string `json:"status,omitempty"`
	// Error is why the composition is in this state, if it is an error.
	Error string `json:"error,omitempty"`
}

// Synthesis is one run of a Synthesizer.
type Synthesis struct {
	// UUID identifies the synthesis.
	UUID string `json:"uuid,omitempty"`
	// ObservedCompositionGeneration is the generation of the composition that the
	// synthesis started with, or a newer one that does not change the result.
	ObservedCompositionGeneration int64 `json:"observedCompositionGeneration,omitempty"`
	// ObservedSynthesizerGeneration is the generation of the Synthesizer that the
	// synthesis started with, or a newer one that does not change the result.
	ObservedSynthesizerGeneration int64 `json:"observedSynthesizerGeneration,omitempty"`
	// Initialized is when the synthesis was requested.
	Initialized *metav1.Time `json:"initialized,omitempty"`
	// Synthesized is when the ResourceSlices were written.
	Synthesized *metav1.Time `json:"synthesized,omitempty"`
	// Reconciled is when all objects had been applied to the cluster.
	Reconciled *metav1.Time `json:"reconciled,omitempty"`
	// Ready is when all objects were ready.
	Ready *metav1.Time `json:"ready,omitempty"`
	// Canceled is when the synthesis was canceled.
	Canceled *metav1.Time `json:"canceled,omitempty"`
	// Attempts is the number of consecutive attempts with the same generations and inputs,
	// including this one.
	Attempts int `json:"attempts,omitempty"`
	// ResourceSlices hold the manifests.
	ResourceSlices []*ResourceSliceRef `json:"resourceSlices,omitempty"`
	// Results are the messages that the program reported.
	Results []Result `json:"results,omitempty"`
	// InputRevisions are the revisions of the inputs that the synthesis started with.
	InputRevisions []InputRevisions `json:"inputRevisions,omitempty"`
	// Deferred is set if the synthesis is part of a rollout, and waited for its turn.
	Deferred bool `json:"deferred,omitempty"`
	// FailedBefore is set on a synthesis of a rollout if the composition was failing before the
	// rollout reached it. Such a composition does not halt the rollout.
	FailedBefore bool `json:"failedBefore,omitempty"`
	// Forced is set if the annotation eno.azure.io/force-resynthesis asked for it. It is
	// then delivered in full, even if the output has not changed.
	Forced bool `json:"forced,omitempty"`
	// RolledBackTo is the UUID of the synthesis whose manifests this one reuses. It is
	// set only if this one is a rollback, for which the program is not run.
	RolledBackTo string `json:"rolledBackTo,omitempty"`
}

// Severities of results.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// Result is a message that a Synthesizer reported.
type Result struct {
	// Message is a human-readable text.
	Message string `json:"message,omitempty"`
	// Severity is error, warning or info.
	Severity string `json:"severity,omitempty"`
	// Tags are details of the message.
	Tags map[string]string `json:"tags,omitempty"`
}

// Failed reports whether the program reported an error.
func (s *Synthesis) Failed() bool {
	for _, r := range s.Results {
		if r.Severity == SeverityError {
			return true
		}
	}

	return false
}

// InputRevisions is the revision of one input.
type InputRevisions struct {
	// Key of the input.
	Key string `json:"key,omitempty"`
	// ResourceVersion of the object.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Revision is the annotation eno.azure.io/revision of the object. If it is set, it is
	// compared instead of the resourceVersion.
	Revision *int `json:"revision,omitempty"`
	// SynthesizerGeneration is the annotation eno.azure.io/synthesizer-generation of the
	// object.
	SynthesizerGeneration *int64 `json:"synthesizerGeneration,omitempty"`
	// CompositionGeneration is the annotation eno.azure.io/composition-generation of the
	// object.
	CompositionGeneration *int64 `json:"compositionGeneration,omitempty"`
	// IgnoreSideEffects is whether a change of the input triggers no new synthesis. It
	// overrides the annotation eno.azure.io/ignore-side-effects of the composition.
	IgnoreSideEffects *bool `json:"ignoreSideEffects,omitempty"`
}

// DependencyStatus reports what a composition waits for.
type DependencyStatus struct {
	// Blocked is whether the composition waits for other compositions.
	Blocked bool `json:"blocked,omitempty"`
	// Reason is why the composition waits.
	Reason string `json:"reason,omitempty"`
	// BlockedBy are the compositions that it waits for.
	BlockedBy []BlockedBy `json:"blockedBy,omitempty"`
}

// BlockedBy is a composition that another one waits for. Without a name, it represents
// compositions of other namespaces.
type BlockedBy struct {
	// Name of the composition.
	Name string `json:"name,omitempty"`
	// Namespace of the composition.
	Namespace string `json:"namespace,omitempty"`
	// Reason is why the other composition waits for this one.
	Reason string `json:"reason,omitempty"`
}

// Correction is a correction of drift.
type Correction struct {
	// Time is when the object was corrected.
	Time metav1.Time `json:"time"`
	// Manager is the field manager that had changed the object. It is empty if the object was
	// deleted, or if the field manager is not known.
	Manager string `json:"manager,omitempty"`
	// Deleted is set if the object had been deleted.
	Deleted bool `json:"deleted,omitempty"`

	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object. Empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
}

// OwnershipReport reports the handling of fields that belong to other field managers. It
// counts all objects of the current synthesis and lists the first of them.
type OwnershipReport struct {
	// Split is the number of objects with fields that belong to other field managers.
	Split int32 `json:"split"`
	// Migrated is the number of objects whose fields were taken over.
	Migrated int32 `json:"migrated"`
	// Failed is the number of objects whose fields could not be taken over.
	Failed int32 `json:"failed"`
	// Objects are the first of these objects.
	Objects []OwnershipObject `json:"objects,omitempty"`
}

// OwnershipObject is one object of an OwnershipReport.
type OwnershipObject struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Namespace of the object. Empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// State is Split, Migrated or Failed.
	State string `json:"state"`
	// Message names the field managers and their fields, or why it failed.
	Message string `json:"message,omitempty"`
}

// States of an OwnershipObject.
const (
	OwnershipSplit    = "Split"
	OwnershipMigrated = "Migrated"
	OwnershipFailed   = "Failed"
)
