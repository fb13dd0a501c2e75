package kube

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/arbor-control/arbor/api/crds"
)

// TestNeededFields removes each needed field from its CRD.
func TestNeededFields(t *testing.T) {
	for kind, name := range map[string]string{"SubnetPool": "subnetpools.plexaubnet.io", "Subnet": "subnets.plexaubnet.io"} {
		want, ok := crds.ByKind("plexaubnet.io", kind)
		if !ok || want.Name != name {
			t.Fatalf("there is no definition %s", name)
		}
		if err := compatible(want, want); err != nil {
			t.Errorf("the present definition of %s is not compatible: %v", kind, err)
		}
		for _, field := range neededFields[name] {
			have := without(want, field)
			if err := compatible(have, want); err == nil || !strings.Contains(err.Error(), "has no "+field+" in version v1alpha1: upgrade it") {
				t.Errorf("a definition of %s without %s is answered with %v", kind, field, err)
			}
		}
	}
}

// without returns a CRD that does not have a field of spec or status.
func without(crd *apiextensionsv1.CustomResourceDefinition, field string) *apiextensionsv1.CustomResourceDefinition {
	have := crd.DeepCopy()
	in, name, _ := strings.Cut(field, ".")
	delete(have.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[in].Properties, name)

	return have
}
