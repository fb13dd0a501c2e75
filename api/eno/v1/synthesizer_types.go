package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Synthesizer is a program that generates manifests from inputs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Synthesizer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the program and its inputs.
	Spec SynthesizerSpec `json:"spec,omitempty"`
	// Status is the most recently observed state of the rollout.
	Status SynthesizerStatus `json:"status,omitempty"`
}

// SynthesizerList is a list of Synthesizers.
//
// +kubebuilder:object:root=true
type SynthesizerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Synthesizer `json:"items"`
}

// SynthesizerSpec is the program to run and its inputs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.execTimeout) || !has(self.podTimeout) || duration(self.execTimeout) <= duration(self.podTimeout)",message="podTimeout must be at least execTimeout"
type SynthesizerSpec struct {
	// Image is the container image of the program.
	Image string `json:"image,omitempty"`
	// Command to run. It reads its inputs from standard input and writes manifests to
	// standard output, like a KRM function.
	//
	// +kubebuilder:default={"synthesize"}
	Command []string `json:"command,omitempty"`
	// ExecTimeout is accepted for compatibility and has no effect. The flag
	// --synthesis-timeout of the manager limits the duration of a synthesis.
	//
	// +kubebuilder:default="10s"
	ExecTimeout *metav1.Duration `json:"execTimeout,omitempty"`
	// PodTimeout is accepted for compatibility and has no effect.
	//
	// +kubebuilder:default="2m"
	PodTimeout *metav1.Duration `json:"podTimeout,omitempty"`
	// Refs are the inputs of the program.
	Refs []Ref `json:"refs,omitempty"`
	// PodOverrides change the pods that run the program.
	PodOverrides PodOverrides `json:"podOverrides,omitempty"`
}

// SynthesizerStatus reports whether the rollout of a Synthesizer is halted.
type SynthesizerStatus struct {
	// Conditions of the rollout. The type is RolloutHalted.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Ref is an input of a Synthesizer.
//
// +kubebuilder:validation:XValidation:rule="!has(self.pinned) || !self.pinned || has(self.resource.name)",message="a pinned input needs resource.name"
type Ref struct {
	// Key of the input. Compositions bind an object to it.
	Key string `json:"key"`
	// Resource is the kind of the object, and optionally the object.
	Resource ResourceRef `json:"resource"`
	// Defer makes a change of the input wait for its turn in a rollout, like a change of
	// the Synthesizer. Otherwise a change triggers a synthesis immediately.
	Defer bool `json:"defer,omitempty"`
	// Optional inputs may be missing.
	Optional bool `json:"optional,omitempty"`
	// Pinned inputs are always the object that resource names. A composition cannot bind
	// another object.
	Pinned bool `json:"pinned,omitempty"`
}

// ResourceRef is the kind of an input, and optionally an object for all compositions.
type ResourceRef struct {
	// Group of the kind. Empty for the core group.
	Group string `json:"group,omitempty"`
	// Version of the kind.
	Version string `json:"version,omitempty"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Name of the object for all compositions that do not bind the input themselves.
	Name string `json:"name,omitempty"`
	// Namespace of the object that name refers to.
	Namespace string `json:"namespace,omitempty"`
}

// PodOverrides change the pods that run a Synthesizer.
type PodOverrides struct {
	// Labels are added to the pods.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are added to the pods.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Resources of the container that runs the program.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Affinity of the pods.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
}

// SynthesizerRef refers to a Synthesizer.
type SynthesizerRef struct {
	// Name of the Synthesizer.
	Name string `json:"name,omitempty"`
	// LabelSelector is accepted for compatibility and has no effect. Compositions refer
	// to their Synthesizer by name.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
