package node_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/test/cluster"
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
	must(t, install(t.Context(), "--take-ownership"))
	settled(t, c)
	s.check(t)
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
