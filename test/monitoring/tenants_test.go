package monitoring_test

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// deletionForbidden has another manager, which delivers compositions with the label tenant as a
// ServiceAccount. That account may not delete what it delivered, until it may.
func deletionForbidden(t *testing.T, w *world) (map[string]string, func()) {
	t.Helper()
	m := server.StartManager(t, server.Administrator(), "--controllers=delivery", "--webhooks=false", "--namespace=arbor-tenants",
		"--composition-label-selector=tenant", "--delivery-scope=namespace", "--default-service-account=deployer", "--log-format=text")
	w.scrape(t, tenantsJob, m.Metrics)
	t.Cleanup(func() { w.scrape(t, tenantsJob) })
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "deployer"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}}}}
	w.create(t, role)
	w.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: "deployer"}},
	})
	w.composition(t, "forbidden", "good")
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "forbidden"}}
	merge := func(o client.Object, patch string) {
		must(t, w.client.Patch(context.WithoutCancel(t.Context()), o, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	merge(c, `{"metadata": {"labels": {"tenant": "a"}}}`)
	w.ready(t, "forbidden")
	must(t, w.client.Delete(t.Context(), c))

	return map[string]string{"job": tenantsJob}, func() {
		merge(role, `{"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]}]}`)
	}
}
