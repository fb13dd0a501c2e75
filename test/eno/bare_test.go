package eno_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// bare is a manifest without a single field, so the API server keeps no managed fields
// for it.
func bare(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n", name)
}

// TestBareObjects has manifests without a field: the objects are known as delivered, and
// are pruned, also after a restart, and deleted with the composition. An object that
// existed before is not.
func TestBareObjects(t *testing.T) {
	e := newEnv(t)
	must(t, e.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "theirs"}}))
	space := e.namespace + "-bare"
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + space + "}\n"
	all := []string{bare("pruned"), bare("kept"), bare("theirs"), namespace, configMap("filled", "1")}
	e.compose("app", nil, all...)
	e.ready("app")
	if entries := e.config("kept").ManagedFields; len(entries) > 0 {
		t.Fatalf("this is not what the test is about: %+v", entries)
	}
	e.change("app", all[1:]...)
	e.absent("pruned")
	e.ready("app")

	// An object whose manifest loses its fields is still known, and loses them, too.
	e.change("app", bare("kept"), bare("theirs"), namespace, bare("filled"))
	cluster.Eventually(t, "the fields are removed", func() error {
		if o := e.config("filled"); o == nil || len(o.Data) > 0 {
			return fmt.Errorf("it is %+v", o)
		}

		return nil
	})
	e.ready("app")
	e.restart()
	e.remove("app")
	e.gone("app")
	e.absent("kept", "filled")
	e.exist("theirs")
	live := &corev1.Namespace{} // without its controller, it is not deleted to the end
	if err := e.Get(t.Context(), client.ObjectKey{Name: space}, live); !apierrors.IsNotFound(err) && live.DeletionTimestamp == nil {
		t.Errorf("namespace %s is left behind: %v", space, err)
	}
}
