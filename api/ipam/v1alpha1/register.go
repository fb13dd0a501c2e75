package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of this package's kinds.
	GroupVersion = schema.GroupVersion{Group: "plexaubnet.io", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers this package's kinds.
	AddToScheme = schemeBuilder.AddToScheme
)

// Kinds of this package.
const (
	SubnetPoolKind      = "SubnetPool"
	SubnetKind          = "Subnet"
	SubnetClaimKind     = "SubnetClaim"
	SubnetPoolClaimKind = "SubnetPoolClaim"
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&SubnetPool{}, &SubnetPoolList{},
		&Subnet{}, &SubnetList{},
		&SubnetClaim{}, &SubnetClaimList{},
		&SubnetPoolClaim{}, &SubnetPoolClaimList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)

	return nil
}
