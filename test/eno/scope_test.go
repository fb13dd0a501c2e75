package eno_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

// clusterDefinition is the CRD of a cluster-scoped kind.
const clusterDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boulders.eno.example.com}
spec:
  group: eno.example.com
  scope: Cluster
  names: {kind: Boulder, plural: boulders, singular: boulder}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// TestScopeLearnedLater has the manifest of a cluster-scoped object with a namespace, and
// moves it to another namespace, before the CRD is installed. When delivery learns the
// scope, the tombstone of the first namespace is about the object that it has just
// created, and must not delete it. A finalizer shows whether it did.
func TestScopeLearnedLater(t *testing.T) {
	e := newEnv(t)
	boulder := func(namespace string) string {
		return fmt.Sprintf("{apiVersion: eno.example.com/v1, kind: Boulder, metadata: {name: rock, namespace: %s, finalizers: [eno.example.com/test]}, spec: {a: b}}", namespace)
	}
	e.compose("app", nil, boulder("a"))
	e.status("app", "Reconciling", "Boulder")
	e.change("app", boulder("b"))
	e.status("app", "Reconciling", "Boulder b/rock")

	crd, rock := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(clusterDefinition), &crd.Object))
	must(t, e.Create(t.Context(), crd))
	rock.SetAPIVersion("eno.example.com/v1")
	rock.SetKind("Boulder")
	rock.SetName("rock")
	ctx := context.WithoutCancel(t.Context()) // of the cleanup
	release := func() {
		_ = e.Patch(ctx, rock, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	t.Cleanup(func() {
		release()
		_ = e.Delete(ctx, crd)
	})
	e.ready("app")
	must(t, e.Get(t.Context(), client.ObjectKey{Name: "rock"}, rock))
	if rock.GetDeletionTimestamp() != nil {
		t.Error("the object was deleted, because of the tombstone of the other namespace")
	}
	e.remove("app")
	cluster.Eventually(t, "it is deleted with the composition", func() error {
		err := e.Get(t.Context(), client.ObjectKey{Name: "rock"}, rock)
		if err == nil && rock.GetDeletionTimestamp() == nil {
			return fmt.Errorf("it is not: %v", rock.Object)
		}

		return client.IgnoreNotFound(err)
	})
	release()
	e.gone("app")
}

// TestDiffUnservedVersion compares manifests that drop an object whose API version is not
// served any more. Delivery deletes it in another version, and the comparison shows it.
func TestDiffUnservedVersion(t *testing.T) {
	e := newEnv(t)
	crd := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(fmt.Appendf(nil, definition, "herb", "Herb"), &crd.Object))
	must(t, e.Create(t.Context(), crd))
	t.Cleanup(func() { _ = e.Delete(context.WithoutCancel(t.Context()), crd) })
	e.compose("app", nil, "{apiVersion: eno.example.com/v1alpha1, kind: Herb, metadata: {name: one}, spec: {a: b}}", configMap("two", "1"))
	c := e.ready("app")
	must(t, e.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`))))
	cluster.Eventually(t, "the version is not served", func() error {
		if server.Client(t, nil).Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: "one"}, herb("v1alpha1")) == nil {
			return errors.New("it is")
		}

		return nil
	})

	c.APIVersion, c.Kind = enov1.GroupVersion.String(), enov1.CompositionKind
	text, err := yaml.Marshal(c)
	must(t, err)
	file, output := filepath.Join(t.TempDir(), "app.yaml"), filepath.Join(t.TempDir(), "output.json")
	must(t, os.WriteFile(file, text, 0o600))
	must(t, os.WriteFile(output, []byte(e.output(configMap("two", "1"))), 0o600))
	if out := e.arbor(1, "delivery", "diff", "-f", file, "--exec", "cat > /dev/null; cat "+output); !strings.Contains(out, "1 deleted, 1 unchanged\n") {
		t.Errorf("the object exists, and would be deleted: got %s", out)
	}
}

func herb(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("eno.example.com/" + version)
	o.SetKind("Herb")

	return o
}
