package tenants_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// revoke takes the permission to delete away from the deployer of a tenant, until the returned
// function is called.
func (x *tenant) revoke() (restore func()) {
	x.Helper()
	r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: deployer}}
	write := func(rules string) {
		must(x, x.Patch(x.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"rules": `+rules+`}`))))
	}
	write(`[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]}]`)

	return func() {
		write(`[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "patch", "delete"]}]`)
	}
}

// TestDeletionForbidden has an account lose the permission to delete. Each way out ends the
// wait.
func TestDeletionForbidden(t *testing.T) {
	cases := map[string]struct {
		reason string
		exit   func(x *tenant, name string, restore func())
		stays  bool
	}{
		"Restore": {"The permission is restored.", func(_ *tenant, _ string, restore func()) { restore() }, false},
		"Account": {"Another account is named while the composition is being deleted.", func(x *tenant, name string, _ func()) {
			x.merge(name, `{"spec": {"serviceAccountName": "other"}}`)
		}, false},
		"Orphan": {"The objects are left behind.", func(x *tenant, name string, _ func()) {
			x.merge(name, `{"metadata": {"annotations": {"eno.azure.io/deletion-strategy": "orphan"}}}`)
		}, true},
	}
	x := newTenant(t, "leaving")
	must(t, x.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "other"}}))
	must(t, x.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "other"}, Rules: everything}))
	other := grant(x.namespace, "other", x.namespace, "other")
	other.RoleRef.Name = "other"
	must(t, x.Create(t.Context(), other))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t, "leaving")
			composition := "app-" + map[string]string{"Restore": "a", "Account": "b", "Orphan": "c"}[name]
			x.compose(composition, deployer, configMap(x.namespace, composition, "1"))
			x.ready(composition)
			restore := x.revoke()
			defer restore()
			x.delete(composition)
			x.denied(composition, enov1.ReasonDeletionForbidden, `"system:serviceaccount:leaving:deployer" cannot delete resource "configmaps"`, composition,
				"give ServiceAccount leaving/deployer the permission", "spec.serviceAccountName", "eno.azure.io/deletion-strategy: orphan")
			if x.config(composition) == nil {
				t.Error("the object was deleted without permission")
			}
			tc.exit(x, composition, restore)
			gone(t, x.Client, &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: composition}})
			if exists := x.config(composition) != nil; exists != tc.stays {
				t.Errorf("%s\nthe object exists: %t", tc.reason, exists)
			}
		})
	}
}

// TestPruneForbidden has an account lose the permission to delete while an object must be
// pruned: it stays, and the rest is delivered.
func TestPruneForbidden(t *testing.T) {
	x := newTenant(t, "leaving")
	x.compose("prune", deployer, configMap(x.namespace, "kept", "1"), configMap(x.namespace, "pruned", "1"))
	x.ready("prune")
	restore := x.revoke()
	defer restore()
	x.change("prune", configMap(x.namespace, "kept", "2"))
	x.denied("prune", enov1.ReasonDeletionForbidden, "pruned", "arbor-control.dev/prune: never")
	if x.config("pruned") == nil || x.config("kept").Data["value"] != "2" {
		t.Error("the object is gone, or the other one was not delivered")
	}
	restore()
	gone(t, x.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "pruned"}})
	x.ready("prune")
	x.remove("prune")
}

// TestNamespaceEnds deletes the namespace of a tenant. Its ServiceAccount, its RoleBindings and
// the manager's permission to impersonate disappear first, and its compositions have
// finalizers.
func TestNamespaceEnds(t *testing.T) {
	x := newTenant(t, "doomed")
	x.compose("app", deployer, configMap(x.namespace, "app", "1"))
	x.ready("app")
	x.end()
}

// TestNamespaceEndsWithObjectsOutside is about objects that the tenant delivers to another
// namespace. They hold up its namespace for --forbidden-grace, and are left behind then.
func TestNamespaceEndsWithObjectsOutside(t *testing.T) {
	x := newTenant(t, "departed")
	must(t, x.Create(t.Context(), grant(neighbor, "departed", x.namespace, deployer)))
	outside := newTenant(t, neighbor)
	x.compose("app", deployer, configMap(x.namespace, "app", "1"), configMap(neighbor, "outside", "1"))
	x.ready("app")
	uid := outside.config("outside").UID
	x.end()
	o := outside.config("outside")
	if o != nil && o.UID != uid {
		t.Error("the object was created again")
	}
	if o != nil && !strings.Contains(manager.Output(), "an object is not deleted") {
		t.Error("the object is left behind, and the manager did not log it")
	}
}

// end deletes the namespace of a tenant.
func (x *tenant) end() {
	x.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	must(x, x.Delete(x.Context(), namespace))
	gone(x, x.Client, namespace)
}
