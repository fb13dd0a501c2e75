package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of this package's kinds.
	GroupVersion = schema.GroupVersion{Group: "eno.azure.io", Version: "v1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers this package's kinds.
	AddToScheme = schemeBuilder.AddToScheme
)

// Kinds of this package.
const (
	CompositionKind   = "Composition"
	SynthesizerKind   = "Synthesizer"
	ResourceSliceKind = "ResourceSlice"
	SymphonyKind      = "Symphony"
	// PatchKind is the kind of manifests that change an object which another client
	// creates. It is never stored as an object.
	PatchKind = "Patch"
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Composition{}, &CompositionList{},
		&Synthesizer{}, &SynthesizerList{},
		&ResourceSlice{}, &ResourceSliceList{},
		&Symphony{}, &SymphonyList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)

	return nil
}
