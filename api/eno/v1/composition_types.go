package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Composition is one use of a Synthesizer, and what came of it.
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

	Spec   CompositionSpec   `json:"spec,omitempty"`
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

// CompositionSpec says which Synthesizer is run, with what. Any change of it is
// followed by a new synthesis.
type CompositionSpec struct {
	// Synthesizer that is run.
	Synthesizer SynthesizerRef `json:"synthesizer,omitempty"`
	// Bindings are the objects that the Synthesizer is given. Those that it does not
	// know are left alone. With --delivery-scope=namespace, they must be in the namespace
	// of the composition or in one of --input-namespaces.
	Bindings []Binding `json:"bindings,omitempty"`
	// SynthesisEnv is added to the environment of the Synthesizer. With
	// --delivery-scope=namespace, variables that make programs load other code, such as
	// LD_PRELOAD and PATH, are rejected.
	//
	// +kubebuilder:validation:MaxItems:=500
	SynthesisEnv []EnvVar `json:"synthesisEnv,omitempty"`
	// DependsOn are compositions that must be ready before this one is synthesized,
	// and that are deleted after it. With --delivery-scope=namespace, a composition of
	// another namespace is deleted after it only if it has the annotation
	// arbor-control.dev/dependents-from.
	//
	// +kubebuilder:validation:MaxItems:=50
	DependsOn []CompositionDependency `json:"dependsOn,omitempty"`
	// ServiceAccountName is the ServiceAccount, in the namespace of the composition, that
	// its objects are read, written and deleted as if the manager runs with
	// --delivery-scope=namespace. Empty: that of --default-service-account. It may be
	// changed while the composition is being deleted.
	//
	// +kubebuilder:validation:MaxLength:=253
	// +kubebuilder:validation:Pattern:=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// A Binding gives an object to an input.
type Binding struct {
	// Key of the input.
	Key string `json:"key"`
	// Resource is the object.
	Resource ResourceBinding `json:"resource"`
}

// A ResourceBinding names an object of the kind that the input has.
type ResourceBinding struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// An EnvVar is a variable of the environment.
type EnvVar struct {
	// +kubebuilder:validation:MaxLength:=100
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// A CompositionDependency names another composition.
type CompositionDependency struct {
	Name string `json:"name,omitempty"`
	// Namespace is that of the dependent composition if empty.
	Namespace string `json:"namespace,omitempty"`
}

// CompositionStatus is what came of a composition. A synthesis is in flight, then
// the current one, then the previous one.
type CompositionStatus struct {
	// Simplified is all of it in a word.
	Simplified        *SimplifiedStatus `json:"simplified,omitempty"`
	InFlightSynthesis *Synthesis        `json:"inFlightSynthesis,omitempty"`
	CurrentSynthesis  *Synthesis        `json:"currentSynthesis,omitempty"`
	PreviousSynthesis *Synthesis        `json:"previousSynthesis,omitempty"`
	// InputRevisions are the inputs as they are now.
	InputRevisions   []InputRevisions  `json:"inputRevisions,omitempty"`
	DependencyStatus *DependencyStatus `json:"dependencyStatus,omitempty"`
	// History are syntheses before the previous one whose manifests are still
	// there, newest first.
	History []Synthesis `json:"history,omitempty"`
	// Ownership says of which objects fields were moved to the applier.
	Ownership *OwnershipReport `json:"ownership,omitempty"`
	// LastCorrection is the last time that delivery corrected an object which another client
	// had changed or deleted. It is written at most once in ten seconds.
	LastCorrection *Correction `json:"lastCorrection,omitempty"`
	// Conditions say what is stuck, and why.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SimplifiedStatus is a status for people.
type SimplifiedStatus struct {
	Status string `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// A Synthesis is one run of a Synthesizer.
type Synthesis struct {
	// UUID tells it from all others.
	UUID string `json:"uuid,omitempty"`
	// The generations that it was begun with, or newer ones.
	ObservedCompositionGeneration int64 `json:"observedCompositionGeneration,omitempty"`
	ObservedSynthesizerGeneration int64 `json:"observedSynthesizerGeneration,omitempty"`
	// Initialized is when it was begun, Synthesized when its slices were written,
	// Reconciled when all of its resources were in the cluster, Ready when all of
	// them were ready, and Canceled when it was given up.
	Initialized *metav1.Time `json:"initialized,omitempty"`
	Synthesized *metav1.Time `json:"synthesized,omitempty"`
	Reconciled  *metav1.Time `json:"reconciled,omitempty"`
	Ready       *metav1.Time `json:"ready,omitempty"`
	Canceled    *metav1.Time `json:"canceled,omitempty"`
	// Attempts is how often the program was started for the same reason.
	Attempts int `json:"attempts,omitempty"`
	// ResourceSlices hold the manifests.
	ResourceSlices []*ResourceSliceRef `json:"resourceSlices,omitempty"`
	// Results are what the program said.
	Results []Result `json:"results,omitempty"`
	// InputRevisions are the inputs that it was begun with.
	InputRevisions []InputRevisions `json:"inputRevisions,omitempty"`
	// Deferred : it waited for its turn in a rollout.
	Deferred bool `json:"deferred,omitempty"`
	// FailedBefore is set on a synthesis of a rollout if the composition was failing before the
	// rollout reached it. Such a composition does not halt the rollout.
	FailedBefore bool `json:"failedBefore,omitempty"`
	// Forced is set if the annotation eno.azure.io/force-resynthesis asked for it. It is
	// then delivered in full, even if the output has not changed.
	Forced bool `json:"forced,omitempty"`
	// RolledBackTo is the synthesis whose manifests it has, if it was no run.
	RolledBackTo string `json:"rolledBackTo,omitempty"`
}

// Severities of results.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityInfo    = "info"
)

// A Result is something that a Synthesizer said.
type Result struct {
	Message  string            `json:"message,omitempty"`
	Severity string            `json:"severity,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
}

// Failed says whether the program reported an error.
func (s *Synthesis) Failed() bool {
	for _, r := range s.Results {
		if r.Severity == SeverityError {
			return true
		}
	}

	return false
}

// InputRevisions is the version of one input. If there is a Revision, it counts
// instead of the ResourceVersion.
type InputRevisions struct {
	Key                   string `json:"key,omitempty"`
	ResourceVersion       string `json:"resourceVersion,omitempty"`
	Revision              *int   `json:"revision,omitempty"`
	SynthesizerGeneration *int64 `json:"synthesizerGeneration,omitempty"`
	CompositionGeneration *int64 `json:"compositionGeneration,omitempty"`
	// IgnoreSideEffects : a change of it is no reason for a new synthesis, or is one
	// even if the composition says otherwise.
	IgnoreSideEffects *bool `json:"ignoreSideEffects,omitempty"`
}

// DependencyStatus says what a composition waits for.
type DependencyStatus struct {
	Blocked   bool        `json:"blocked,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	BlockedBy []BlockedBy `json:"blockedBy,omitempty"`
}

// BlockedBy is one composition that another waits for. Without a name, it stands for
// compositions of other namespaces.
type BlockedBy struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// A Correction is a correction of drift.
type Correction struct {
	// Time is when the object was corrected.
	Time metav1.Time `json:"time"`
	// Manager is the field manager that had changed the object. It is empty if the object was
	// deleted, or if the field manager is not known.
	Manager string `json:"manager,omitempty"`
	// Deleted is set if the object had been deleted.
	Deleted bool `json:"deleted,omitempty"`

	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// An OwnershipReport says what was done about fields that others hold. It counts
// all objects of the current synthesis and names the first of them.
type OwnershipReport struct {
	// Split objects have parts that others hold. Migrated ones had, and Failed ones
	// still have because they could not be changed.
	Split    int32             `json:"split"`
	Migrated int32             `json:"migrated"`
	Failed   int32             `json:"failed"`
	Objects  []OwnershipObject `json:"objects,omitempty"`
}

// An OwnershipObject is one object of an OwnershipReport.
type OwnershipObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// State is Split, Migrated or Failed.
	State string `json:"state"`
	// Message says who holds what, or why it failed.
	Message string `json:"message,omitempty"`
}

// States of an OwnershipObject.
const (
	OwnershipSplit    = "Split"
	OwnershipMigrated = "Migrated"
	OwnershipFailed   = "Failed"
)
