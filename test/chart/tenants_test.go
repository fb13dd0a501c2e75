package chart_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// TestTenantPermissions delivers as the ServiceAccount of a tenant. Manager and account use exactly the
// permissions that they have: the manager writes nothing that it delivers.
func TestTenantPermissions(t *testing.T) {
	const deployer = "deployer"
	c := server.Client(t, nil)
	purge(t, c)
	tenant := cluster.Namespace(t, c)
	in := metav1.ObjectMeta{Namespace: tenant, Name: deployer}
	rules := func(configMaps ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: configMaps},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "patch"}},
		}
	}
	role := &rbacv1.Role{ObjectMeta: in, Rules: rules("get", "create", "patch", "delete")}
	for _, o := range []client.Object{&corev1.ServiceAccount{ObjectMeta: in}, role, &rbacv1.RoleBinding{
		ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: deployer},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: tenant, Name: deployer}},
	}} {
		must(t, c.Create(t.Context(), o))
	}
	r := install(t, c, "arbor-tenants", tenants("metrics.enabled=false", "delivery.tenantNamespaces={"+tenant+"}", "delivery.defaultServiceAccount="+deployer,
		"delivery.rules[0].apiGroups[0]=", "delivery.rules[0].resources={configmaps}", "delivery.rules[0].verbs={list,watch}",
		"delivery.rules[1].apiGroups={apps}", "delivery.rules[1].resources={deployments}", "delivery.rules[1].verbs={list,watch}")...)
	manager, account := "system:serviceaccount:"+r.name+":"+r.name+"-manager", "system:serviceaccount:"+tenant+":"+deployer
	haves := map[string][]right{manager: granted(t, c, r.name, r.name+"-manager"), account: granted(t, c, tenant, deployer)}

	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	s := &stage{Client: c, release: r, namespace: tenant}
	s.manager = r.start(t, "--metrics-bind-address=0")
	playDelivery(t, s)
	check := func(user string) {
		t.Helper()
		cluster.Eventually(t, user+" uses every permission", func() error {
			given, refused := asked(t, user)
			for one := range refused {
				t.Errorf("%s has used and was not granted: %s", user, one)
			}
			if left := unused(haves[user], given); len(left) > 0 && !t.Failed() {
				return fmt.Errorf("granted and not used:\n%s", strings.Join(left, "\n"))
			}

			return nil
		})
	}
	check(account)
	s.playForbidden(t, role, rules)
	check(manager)
}

// playForbidden has an object to be deleted that may not be, until it may.
func (s *stage) playForbidden(t *testing.T, role *rbacv1.Role, rules func(...string) []rbacv1.PolicyRule) {
	t.Helper()
	c := &enov1.Composition{ObjectMeta: s.meta("forbidden")}
	s.create(t, c)
	manifest := enov1.Manifest{Manifest: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"forbidden","namespace":%q},"data":{"color":"red"}}`, s.namespace)}
	s.synthesis(t, c, "six", manifest)
	s.reconciled(t, c)
	role.Rules = rules("get", "create", "patch")
	must(t, s.Update(t.Context(), role))
	manifest.Deleted = true
	s.synthesis(t, c, "seven", manifest)
	s.await(t, "the deletion is forbidden", c, func() bool {
		found := meta.FindStatusCondition(c.Status.Conditions, enov1.ConditionAccessDenied)

		return found != nil && found.Reason == enov1.ReasonDeletionForbidden
	})
	role.Rules = rules("get", "create", "patch", "delete")
	must(t, s.Update(t.Context(), role))
	cluster.Eventually(t, "the object is deleted", func() error {
		err := s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "forbidden"}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(errors.New("it exists"), err)
	})
	must(t, client.IgnoreNotFound(s.Delete(t.Context(), c)))
}
