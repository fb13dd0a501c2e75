package node_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/node/registry"
	"github.com/arbor-control/arbor/tools/release/oci"
)

// Requests are admitted while a release is upgraded: by default chart and CRDs that are kept in
// test/upgrade, with the present program, or all of the commit that make node-upgrade builds. It is
// upgraded to the present chart, first with scope cluster and then with scope namespace.
func TestUpgrade(t *testing.T) {
	c := server.Client(t, nil)
	definitions := released(t)
	dir := os.Getenv("ARBOR_FROM")
	if dir == "" {
		dir = filepath.Join(cluster.Root(), "test", "upgrade", "released", "chart")
		for _, crd := range definitions {
			must(t, kube.EnsureCRD(t.Context(), c, crd, true))
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "arbor.yaml"))
	must(t, err)
	objects, err := cluster.Objects(string(text))
	must(t, err)
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			adapt(t, o)
		}
	}
	must(t, server.Install(t.Context(), release, namespace, objects))
	cluster.Eventually(t, "the release to upgrade from runs", func() error { return rolledOut(t.Context(), c, "arbor-manager") })
	s := admit(t, c)
	must(t, install(t.Context(), append(privateImage(t, c), "--take-ownership")...))
	settled(t, c)
	// The scope of delivery can be changed in the same way.
	must(t, install(t.Context(), append(privateImage(t, c), "--set", "delivery.scope=namespace", "--set", "delivery.rules[0].verbs={list,watch}")...))
	settled(t, c)
	s.check(t)
	for _, was := range definitions {
		now, ok := crds.ByKind(was.Spec.Group, was.Spec.Names.Kind)
		have := &apiextensionsv1.CustomResourceDefinition{}
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(was), have))
		if !ok {
			t.Fatalf("%s does not exist any more", was.Name)
		}
		if diff := cmp.Diff(schemas(t, now), schemas(t, have)); diff != "" {
			t.Errorf("%s was not upgraded:\n%s", was.Name, diff)
		}
	}
}

// schemas returns what a CRD allows, by version, as any JSON: a default may be written in several ways.
func schemas(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, v := range crd.Spec.Versions {
		data, err := json.Marshal(v.Schema)
		must(t, err)
		var schema any
		must(t, json.Unmarshal(data, &schema))
		all[v.Name] = schema
	}

	return all
}

// released returns the CRDs that are kept in test/upgrade.
func released(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cluster.Root(), "test", "upgrade", "released", "*.yaml"))
	must(t, err)
	if len(files) == 0 {
		t.Fatal("test/upgrade/released has no CRDs")
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		all[i] = &apiextensionsv1.CustomResourceDefinition{}
		must(t, yaml.UnmarshalStrict(data, all[i]))
	}

	return all
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

// adapt has the manager of a release run from an image that the node has: that of the commit in
// ARBOR_FROM, which upgrades its CRDs itself, or the present one. This one runs with the CRDs of
// the release, without the component subnets, for which they lack fields.
func adapt(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	containers, found, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	must(t, err)
	if !found || len(containers) != 1 {
		t.Fatalf("the released Deployment has containers %v", containers)
	}
	container := containers[0].(map[string]any)
	container["image"] = "localhost/arbor-manager:node"
	if dir := os.Getenv("ARBOR_FROM"); dir != "" {
		container["image"] = imageOf(t, filepath.Join(dir, "arbor-manager"))
	} else {
		args, _, err := unstructured.NestedStringSlice(container, "args")
		must(t, err)
		args = slices.DeleteFunc(args, func(arg string) bool {
			return strings.HasPrefix(arg, "--crds=") || strings.HasPrefix(arg, "--controllers=")
		})
		args = append(args, "--crds=check", "--controllers=podgroups,synthesis,delivery")
		must(t, unstructured.SetNestedStringSlice(container, args, "args"))
	}
	must(t, unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"))
}

// imageOf makes an image of a manager known to the node, and returns its name.
func imageOf(t *testing.T, program string) string {
	t.Helper()
	data, err := os.ReadFile(program)
	must(t, err)
	const path = "/arbor-manager"
	i := oci.Image{
		Name: "localhost/arbor-manager", Tag: "from", User: "65532:65532", Created: time.Unix(0, 0).UTC(), Entrypoint: []string{path},
		Variants: []oci.Variant{{OS: "linux", Arch: runtime.GOARCH, Files: []oci.File{{Path: path, Executable: true, Data: data}}}},
	}
	archive, err := os.Create(filepath.Join(t.TempDir(), "from.oci.tar"))
	must(t, err)
	_, err = i.Write(archive)
	must(t, errors.Join(err, archive.Close()))
	must(t, node.Import(archive.Name()))

	return i.Name + ":" + i.Tag
}
