package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Symphony makes a Composition for each of several Synthesizers.
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

	Spec   SymphonySpec   `json:"spec,omitempty"`
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

// SymphonySpec says which compositions there are.
type SymphonySpec struct {
	// Variations are the compositions. No two have the same Synthesizer. If one is
	// removed, its composition is deleted.
	Variations []Variation `json:"variations,omitempty"`
	// Bindings that all compositions have.
	Bindings []Binding `json:"bindings,omitempty"`
	// SynthesisEnv that all compositions have; better set it in variations.
	//
	// +kubebuilder:validation:MaxItems:=50
	SynthesisEnv []EnvVar `json:"synthesisEnv,omitempty"`
}

// A Variation is one composition of a Symphony.
type Variation struct {
	// Labels and Annotations of the composition. An empty value removes one.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Synthesizer of the composition.
	Synthesizer SynthesizerRef `json:"synthesizer,omitempty"`
	// Bindings go before those of the Symphony.
	Bindings []Binding `json:"bindings,omitempty"`
	// SynthesisEnv goes before that of the Symphony.
	//
	// +kubebuilder:validation:MaxItems:=25
	SynthesisEnv []EnvVar `json:"synthesisEnv,omitempty"`
	// Optional : the status of the Symphony does not wait for it.
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

// A VariationDependency names another variation of the same Symphony.
type VariationDependency struct {
	// Synthesizer of that variation.
	Synthesizer string `json:"synthesizer,omitempty"`
}

// SymphonyStatus is when all compositions had got how far. There is no time as
// long as one of them has not.
type SymphonyStatus struct {
	ObservedGeneration int64        `json:"observedGeneration,omitempty"`
	Synthesized        *metav1.Time `json:"synthesized,omitempty"`
	Reconciled         *metav1.Time `json:"reconciled,omitempty"`
	Ready              *metav1.Time `json:"ready,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
