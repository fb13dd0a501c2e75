package stock

import "github.com/arbor-control/arbor/internal/identity"

// clusterScoped are the kinds of Kubernetes, and of Arbor, that have no namespace, by group. A test
// compares them with an API server. Kinds that are not known here get a namespace; delivery drops
// it if they are cluster-scoped on the server.
var clusterScoped = map[string][]string{
	"":                             {"Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"eno.azure.io":                 {"Synthesizer"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
}

type groupKind struct{ group, kind string }

// scopes has the kinds that are known to be cluster-scoped.
type scopes map[groupKind]bool

// known is an [identity.Scopes]. Of other kinds it is not known whether they are namespaced.
func (s scopes) known(group, kind string) (namespaced, known bool) {
	return false, s[groupKind{group, kind}]
}

// scopesOf knows the kinds of Kubernetes, and those that CustomResourceDefinitions
// among the objects define.
func scopesOf(all []Object) scopes {
	s := scopes{}
	for group, kinds := range clusterScoped {
		for _, kind := range kinds {
			s[groupKind{group, kind}] = true
		}
	}
	for _, o := range all {
		if id := identity.Of(o.Content); id.Group == "apiextensions.k8s.io" && id.Kind == "CustomResourceDefinition" && !id.IsPatch() && o.text("spec", "scope") == "Cluster" {
			s[groupKind{o.text("spec", "group"), o.text("spec", "names", "kind")}] = true
		}
	}

	return s
}

// cluster reports whether an object has no namespace. A Patch is where its target
// is.
func (s scopes) cluster(o Object) bool {
	id := identity.Of(o.Content)

	return s[groupKind{id.Group, id.Kind}]
}
