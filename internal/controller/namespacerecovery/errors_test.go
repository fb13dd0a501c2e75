package namespacerecovery

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
)

// TestErrors has each request fail while a namespace is created again, and deleted.
func TestErrors(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, enov1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	left := metav1.ObjectMeta{Namespace: "gone", Name: "x"}
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"Composition": {"A Composition is left.", []client.Object{&enov1.Composition{ObjectMeta: left}}},
		"Slice":       {"Only a ResourceSlice is left, which is looked for last.", []client.Object{&enov1.ResourceSlice{ObjectMeta: left}}},
		"Restored": {"An earlier manager has created the namespace, and ended.", []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone", Finalizers: []string{"kubernetes"}, Annotations: map[string]string{enov1.AnnotationRecreationReason: reason}}},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: tc.objects,
				// A namespace with something in it stays for a while.
				OnCreate: func(o client.Object) { o.SetFinalizers([]string{"kubernetes"}) },
				New: func(s *controllertest.Server) func(context.Context) (reconcile.Result, error) {
					r := &Reconciler{client: s, reader: s}

					return func(ctx context.Context) (reconcile.Result, error) {
						return r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "gone"}})
					}
				},
				Final: func() []client.ObjectList { return []client.ObjectList{&corev1.NamespaceList{}} },
			})
		})
	}
}
