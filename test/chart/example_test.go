package chart_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/arbor-control/arbor/test/cluster"
)

// What the example gives pods of synthesizers and the manager is what the chart gives
// them, which test/synthesis runs with.
func TestExampleOfPods(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(cluster.Root(), "examples", "synthesizer-pods.yaml"))
	must(t, err)
	example := objects(t, string(data))
	made := render(t, only("synthesis", "synthesis.pods.enabled=true", "synthesis.pods.namespace="+namespace, "synthesis.inputs[0].apiGroups[0]=", "synthesis.inputs[0].resources[0]=configmaps")...)
	for name, role := range map[string]struct{ kind, example, chart string }{
		"Pods":      {"ClusterRole", "arbor-synthesizer", "arbor-synthesizer"},
		"Manager":   {"Role", "arbor-manager-synthesizers", "arbor-synthesizer-pods"},
		"Namespace": {"ClusterRole", "arbor-manager-synthesizers", "arbor-synthesis"},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := rules(t, find(example, role.kind, role.example)), rules(t, find(made, role.kind, role.chart))
			for r := range want {
				// The chart's has the other permissions of the part, too.
				if name == "Namespace" && r.resource != "namespaces" {
					delete(want, r)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the chart has -, the example has +:\n%s", diff)
			}
		})
	}
}

// rules are the permissions of a role.
func rules(t *testing.T, o *unstructured.Unstructured) map[right]bool {
	t.Helper()
	if o == nil {
		t.Fatal("there is no such role")
	}
	found, role := map[right]bool{}, &rbacv1.ClusterRole{}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role))
	expand(found, o.GetNamespace(), role.Rules)

	return found
}
