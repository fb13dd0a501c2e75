package node_test

import (
	"encoding/base64"
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
	"github.com/arbor-control/arbor/test/node/registry"
)

// Pods of synthesizers pull Arbor's image with the secrets of the chart. It is next to last
// since it changes the release.
func TestPullSecret(t *testing.T) {
	s := newStage(t)
	r, host := serve(t, archives()[0], func(r *registry.Registry) { r.User, r.Password = "puller", "secret" })
	auth := base64.StdEncoding.EncodeToString([]byte(r.User + ":" + r.Password))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson}
	secret.StringData = map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, auth)}
	must(t, s.Create(t.Context(), secret))
	must(t, install(t.Context(), "--set", "imagePullSecrets[0].name=pull", "--set", "synthesis.pods.executorImage="+host+"/arbor-manager:node"))
	s.synthesizer(testImage, "/program", "synthesize", s.namespace, "out", "color=red")
	s.composition("c")
	if _, data := s.ready("c", "out"); data["color"] != "red" || r.Pulls.Load() == 0 {
		t.Errorf("the data is %v, after %d pulls", data, r.Pulls.Load())
	}
}

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
