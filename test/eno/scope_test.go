package eno_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

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
	release := func() {
		_ = e.Patch(t.Context(), rock, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	t.Cleanup(func() {
		release()
		_ = e.Delete(t.Context(), crd)
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
