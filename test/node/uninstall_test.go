package node_test

import (
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// Nothing of a release is left when it is uninstalled, and nothing is rejected for lack of it.
func TestUninstall(t *testing.T) {
	c := server.Client(t, nil)
	_, err := server.Helm(t.Context(), "uninstall", release, "--namespace", namespace, "--wait")
	must(t, err)
	label := client.MatchingLabels{"app.kubernetes.io/instance": release}
	lists := []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{},
		&corev1.SecretList{}, &corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
	}
	cluster.Eventually(t, "nothing is left", func() error {
		var left []error
		for _, list := range lists {
			must(t, c.List(t.Context(), list, label))
			left = append(left, meta.EachListItem(list, func(o runtime.Object) error {
				return fmt.Errorf("%T %s", o, o.(client.Object).GetName())
			}))
		}

		return errors.Join(left...)
	})
	where := cluster.Namespace(t, c)
	group := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: where, Name: "g"}, Spec: v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "a"}}}}
	must(t, c.Create(t.Context(), group))
}
