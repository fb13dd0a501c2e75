package tenants_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// An attack is a composition of the hostile tenant.
type attack struct {
	reason string
	// account is the ServiceAccount, deployer if it is empty.
	account string
	// manifests are what the Synthesizer returns. The objects of those in absent must not exist.
	manifests, absent []string
	// denied is the reason of the condition AccessDenied.
	denied string
}

const (
	binding = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: hostile, name: power}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, namespace: hostile, name: deployer}]}"
	role    = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: hostile}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}"
)

// patchOf is a Patch of a ConfigMap of the victim.
func patchOf(op string) string {
	return fmt.Sprintf("{apiVersion: eno.azure.io/v1, kind: Patch, metadata: {namespace: victim, name: config}, patch: {apiVersion: v1, kind: ConfigMap, ops: [%s]}}", op)
}

// annotated is the ConfigMap of the victim with an annotation.
func annotated(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: victim, name: config, annotations: {%s: %q}}, data: {value: hostile}}", name, value)
}

// attacks are tried while the victim has the ConfigMaps config, which it delivers, and
// by-hand. Neither may change.
var attacks = map[string]attack{
	"Create":      {reason: "create an object in another namespace", manifests: []string{configMap("victim", "new", "x")}, absent: []string{configMap("victim", "new", "x")}, denied: enov1.ReasonOutOfScope},
	"Change":      {reason: "change an object that another tenant delivers", manifests: []string{configMap("victim", "config", "hostile")}, denied: enov1.ReasonOutOfScope},
	"Adopt":       {reason: "adopt an object that another tenant has created", manifests: []string{configMap("victim", "by-hand", "hostile")}, denied: enov1.ReasonOutOfScope},
	"Replace":     {reason: "replace an object", manifests: []string{annotated(enov1.AnnotationReplace, "true")}, denied: enov1.ReasonOutOfScope},
	"AdoptOnce":   {reason: "adopt an object without changing it", manifests: []string{annotated(enov1.AnnotationDisableUpdates, "true")}, denied: enov1.ReasonOutOfScope},
	"Override":    {reason: "read an object by overrides", manifests: []string{annotated(enov1.AnnotationOverrides, `[{"path":"self.data.value","value":"x","condition":"self.data.value == 'secret'"}]`)}, denied: enov1.ReasonOutOfScope},
	"FailOpen":    {reason: "pass over the error", manifests: []string{annotated(enov1.AnnotationFailOpen, "true")}, denied: enov1.ReasonOutOfScope},
	"Patch":       {reason: "patch an object", manifests: []string{patchOf("{op: add, path: /data/value, value: hostile}")}, denied: enov1.ReasonOutOfScope},
	"PatchDelete": {reason: "delete an object by a Patch", manifests: []string{patchOf(`{op: add, path: /metadata/deletionTimestamp, value: "2020-01-01T00:00:00Z"}`)}, denied: enov1.ReasonOutOfScope},
	"Cluster":     {reason: "create a cluster-scoped object", manifests: []string{role}, absent: []string{role}, denied: enov1.ReasonOutOfScope},
	"Namespace":   {reason: "take over the namespace of another tenant", manifests: []string{"{apiVersion: v1, kind: Namespace, metadata: {name: victim, labels: {of: hostile}}}"}, denied: enov1.ReasonOutOfScope},
	"Escalate":    {reason: "give its own account more permissions", manifests: []string{binding}, absent: []string{binding}, denied: enov1.ReasonWriteForbidden},
	"Borrow":      {reason: "use the name of an account that may write in its own namespace only", account: "powerless", manifests: []string{configMap("hostile", "borrowed", "x")}, absent: []string{configMap("hostile", "borrowed", "x")}, denied: enov1.ReasonWriteForbidden},
	"Unknown":     {reason: "use an account that does not exist", account: "arbor-manager", manifests: []string{configMap("hostile", "unknown", "x")}, absent: []string{configMap("hostile", "unknown", "x")}, denied: enov1.ReasonWriteForbidden},
}

// TestAttacks has the hostile tenant try everything. Afterwards each of its compositions can be
// deleted at once, since it has written nothing.
func TestAttacks(t *testing.T) {
	victim, hostile := newTenant(t, "victim"), newTenant(t, "hostile")
	victim.compose("app", deployer, configMap("victim", "config", "1"))
	victim.ready("app")
	must(t, victim.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "victim", Name: "by-hand"}, Data: map[string]string{"value": "1"}}))
	config, byHand := victim.config("config"), victim.config("by-hand")
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			hostile, victim := newTenant(t, "hostile"), newTenant(t, "victim")
			account := a.account
			if account == "" {
				account = deployer
			}
			composition := "attack-" + strings.ToLower(name)
			hostile.compose(composition, account, append(a.manifests, configMap("hostile", "harmless-"+strings.ToLower(name), "1"))...)
			hostile.denied(composition, a.denied, "system:serviceaccount:hostile:"+account)
			for _, text := range a.absent {
				if o := victim.read(text); o != nil {
					t.Errorf("%s: %s %s exists", a.reason, o.GetKind(), o.GetName())
				}
			}
			if diff := cmp.Diff(config, victim.config("config")) + cmp.Diff(byHand, victim.config("by-hand")); diff != "" {
				t.Errorf("%s: an object of the victim has changed:\n%s", a.reason, diff)
			}
			// The rest of the composition is not affected.
			if account == deployer {
				hostile.delivered("harmless-" + strings.ToLower(name))
			}
			hostile.change(composition, configMap("hostile", "harmless-"+strings.ToLower(name), "1"))
			hostile.remove(composition)
			if diff := cmp.Diff(config, victim.config("config")) + cmp.Diff(byHand, victim.config("by-hand")); diff != "" {
				t.Errorf("%s: it is dropped, and an object of the victim has changed:\n%s", a.reason, diff)
			}
		})
	}

	// An object that the hostile tenant names is still the victim's to delete.
	hostile.compose("keep", deployer, configMap("victim", "config", "hostile"))
	hostile.denied("keep", enov1.ReasonOutOfScope)
	victim.remove("app")
	if victim.config("config") != nil {
		t.Error("the hostile tenant keeps an object of the victim by naming it")
	}
	hostile.remove("keep")
}

// TestAccountNames has names that lead to accounts elsewhere.
func TestAccountNames(t *testing.T) {
	for _, name := range []string{"system:serviceaccount:victim:deployer", "victim:deployer", "../victim", "deployer,system:masters", "victim/deployer"} {
		err := newTenant(t, "hostile").Create(t.Context(), &enov1.Composition{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: "named"},
			Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: "x"}, ServiceAccountName: name},
		})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.serviceAccountName") {
			t.Errorf("the API server accepts %q: %v", name, err)
		}
	}
}

// TestNoAccount has a composition without an account, which gets one later.
func TestNoAccount(t *testing.T) {
	x := newTenant(t, "leaving")
	x.compose("none", "", configMap("leaving", "none", "1"))
	x.denied("none", enov1.ReasonNoServiceAccount, "spec.serviceAccountName", "--default-service-account")
	if x.config("none") != nil {
		t.Error("it was delivered without an account")
	}
	x.merge("none", `{"spec": {"serviceAccountName": "deployer"}}`)
	x.ready("none")
	if x.config("none") == nil {
		t.Error("it is not delivered with an account")
	}
	x.remove("none")
}

// TestImpersonationForbidden has a tenant whose namespace is not listed.
func TestImpersonationForbidden(t *testing.T) {
	x := newTenant(t, unlisted)
	x.compose("app", deployer, configMap(unlisted, "app", "1"))
	x.denied("app", enov1.ReasonImpersonationForbidden, "impersonate serviceaccounts in namespace unlisted", "delivery.tenantNamespaces")
	if x.config("app") != nil {
		t.Error("it was delivered with the permissions of the manager")
	}
	x.remove("app")
}
