package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Synthesizer is a program that makes manifests from inputs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Synthesizer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SynthesizerSpec   `json:"spec,omitempty"`
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

// SynthesizerSpec says what is run, and what it is given.
//
// +kubebuilder:validation:XValidation:rule="!has(self.execTimeout) || !has(self.podTimeout) || duration(self.execTimeout) <= duration(self.podTimeout)",message="podTimeout must be at least execTimeout"
type SynthesizerSpec struct {
	// Image of the container that the program is in.
	Image string `json:"image,omitempty"`
	// Command that is run. It reads its inputs from standard input and writes
	// manifests to standard output, as KRM functions do.
	//
	// +kubebuilder:default={"synthesize"}
	Command []string `json:"command,omitempty"`
	// ExecTimeout and PodTimeout are here for the manifests that set them; how long
	// a synthesis may take is a flag of the manager.
	//
	// +kubebuilder:default="10s"
	ExecTimeout *metav1.Duration `json:"execTimeout,omitempty"`
	// +kubebuilder:default="2m"
	PodTimeout *metav1.Duration `json:"podTimeout,omitempty"`
	// Refs are the inputs that the program knows by their keys.
	Refs []Ref `json:"refs,omitempty"`
	// PodOverrides change the pods that the program runs in.
	PodOverrides PodOverrides `json:"podOverrides,omitempty"`
}

// SynthesizerStatus reports whether the rollout of a Synthesizer is halted.
type SynthesizerStatus struct {
	// Conditions report what is wrong, and why.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A Ref is an input of a Synthesizer.
//
// +kubebuilder:validation:XValidation:rule="!has(self.pinned) || !self.pinned || has(self.resource.name)",message="a pinned input needs resource.name"
type Ref struct {
	// Key that compositions bind an object to.
	Key string `json:"key"`
	// Resource is what kind of object it is.
	Resource ResourceRef `json:"resource"`
	// Defer : a change of the input waits for its turn in the rollout, as a change
	// of the Synthesizer does. Others are followed at once.
	Defer bool `json:"defer,omitempty"`
	// Optional inputs may be absent.
	Optional bool `json:"optional,omitempty"`
	// Pinned inputs are always the object that resource names. A composition cannot bind
	// another one.
	Pinned bool `json:"pinned,omitempty"`
}

// A ResourceRef is a kind of object, or one object of it for all compositions.
type ResourceRef struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`
	// Name and Namespace bind the input to an object for all compositions that do
	// not bind it themselves.
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// PodOverrides change the pods of syntheses.
type PodOverrides struct {
	Labels      map[string]string           `json:"labels,omitempty"`
	Annotations map[string]string           `json:"annotations,omitempty"`
	Resources   corev1.ResourceRequirements `json:"resources,omitempty"`
	Affinity    *corev1.Affinity            `json:"affinity,omitempty"`
}

// A SynthesizerRef names a Synthesizer.
type SynthesizerRef struct {
	Name string `json:"name,omitempty"`
	// LabelSelector is kept for the manifests that have one; compositions are bound
	// by name.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
