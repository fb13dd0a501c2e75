package node_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/node/registry"
)

// Requests are admitted while the chart of the last release is upgraded to the present one.
// The program is the present one in both.
func TestUpgrade(t *testing.T) {
	c := server.Client(t, nil)
	text, err := os.ReadFile(filepath.Join(cluster.Root(), "test", "upgrade", "released", "chart", "arbor.yaml"))
	must(t, err)
	objects, err := cluster.Objects(string(text))
	must(t, err)
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			useLocalImage(t, o)
		}
	}
	must(t, server.Install(t.Context(), release, namespace, objects))
	cluster.Eventually(t, "the last release runs", func() error { return rolledOut(t.Context(), c, "arbor-manager") })
	s := admit(t, c)
	must(t, install(t.Context(), append(privateImage(t, c), "--take-ownership")...))
	settled(t, c)
	s.check(t)
}

// Pods of synthesizers pull Arbor's image with the secrets of the chart. It is the last test,
// since the release has them after TestUpgrade.
func TestPullSecret(t *testing.T) {
	s := newStage(t)
	must(t, install(t.Context(), privateImage(t, s.Client)...))
	s.compose(testImage, "/program", "synthesize", s.namespace, output, "color=red")
	r, _ := private()
	if _, data := s.ready(); data["color"] != "red" || r.Pulls.Load() == 0 {
		t.Errorf("the data is %v, after %d pulls", data, r.Pulls.Load())
	}
}

// private returns a registry that needs a password, which has Arbor's image, and its host.
// It is served until the tests end.
var private = sync.OnceValues(func() (*registry.Registry, string) {
	r, err := registry.Open(archives()[0])
	if err != nil {
		panic(err)
	}
	r.User, r.Password = "puller", "secret"

	return r, strings.TrimPrefix(httptest.NewServer(r).URL, "http://")
})

// privateImage makes a secret for that registry, and returns the values of the chart with
// which synthesizer pods need it.
func privateImage(t *testing.T, c client.Client) []string {
	t.Helper()
	r, host := private()
	auth := base64.StdEncoding.EncodeToString([]byte(r.User + ":" + r.Password))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson}
	secret.StringData = map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, auth)}
	must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), secret)))

	return []string{"--set", "imagePullSecrets[0].name=pull", "--set", "synthesis.pods.executorImage=" + host + "/arbor-manager:node"}
}

// useLocalImage has the manager of a release run from the image that the node has.
func useLocalImage(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	containers, found, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	must(t, err)
	if !found || len(containers) != 1 {
		t.Fatalf("the released Deployment has containers %v", containers)
	}
	containers[0].(map[string]any)["image"] = "localhost/arbor-manager:node"
	must(t, unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"))
}
