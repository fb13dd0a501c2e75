package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Symphony creates a Composition for each of several Synthesizers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="SymphonyReady")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=date,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="SymphonyReady")].message`,priority=1
type Symphony struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the Synthesizers and their inputs.
	Spec SymphonySpec `json:"spec,omitempty"`
	// Status is the most recently observed state of the compositions.
	Status SymphonyStatus `json:"status,omitempty"`
}

// SymphonyList is a list of Symphonies.
//
// +kubebuilder:object:root=true
type SymphonyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Symphony `json:"items"`
}

// SymphonySpec is the set of compositions of a Symphony.
type SymphonySpec struct {
	// Variations are the compositions. Each has a different Synthesizer. If a variation is
	// removed, its composition is deleted.
	Variations []Variation `json:"variations,omitempty"`
	// Bindings are the inputs of all compositions.
	Bindings []Binding `json:"bindings,omitempty"`
	// SynthesisEnv are environment variables for all compositions. Prefer to set them in
	// variations.
	//
	// +kubebuilder:validation:MaxItems:=50
	SynthesisEnv []EnvVar `json:"synthesisEnv,omitempty"`
}

// Variation is one composition of a Symphony.
type Variation struct {
	// Labels of the composition. An empty value removes the label.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the composition. An empty value removes the annotation.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Synthesizer of the composition.
	Synthesizer SynthesizerRef `json:"synthesizer,omitempty"`
	// Bindings override those of the Symphony with the same key.
	Bindings []Binding `json:"bindings,omitempty"`
	// SynthesisEnv overrides variables of the Symphony with the same name.
	//
	// +kubebuilder:validation:MaxItems:=25
	SynthesisEnv []EnvVar `json:"synthesisEnv,omitempty"`
	// Optional excludes the composition from the status of the Symphony.
	Optional bool `json:"optional,omitempty"`
	// DependsOn are variations that must be ready before this one.
	//
	// +kubebuilder:validation:MaxItems:=50
	DependsOn []VariationDependency `json:"dependsOn,omitempty"`
	// ServiceAccountName of the composition.
	//
	// +kubebuilder:validation:MaxLength:=253
	// +kubebuilder:validation:Pattern:=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// VariationDependency refers to another variation of the same Symphony.
type VariationDependency struct {
	// Synthesizer is the name of the Synthesizer of that variation.
	Synthesizer string `json:"synthesizer,omitempty"`
}

// SymphonyStatus is the observed state of a Symphony.
type SymphonyStatus struct {
	// ObservedGeneration is the generation of the Symphony that the status is based on.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Synthesized is when all compositions were synthesized. Absent while one is not.
	Synthesized *metav1.Time `json:"synthesized,omitempty"`
	// Reconciled is when all compositions were reconciled. Absent while one is not.
	Reconciled *metav1.Time `json:"reconciled,omitempty"`
	// Ready is when all compositions were ready. Absent while one is not.
	Ready *metav1.Time `json:"ready,omitempty"`
	// Conditions of the Symphony. The type is SymphonyReady.
	//
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
