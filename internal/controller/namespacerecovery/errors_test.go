package namespacerecovery

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
)

// TestErrors has each request fail while a namespace is created again, and deleted.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, corev1.AddToScheme, enov1.AddToScheme)
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
				New: func(s *controllertest.Server) controllertest.Step {
					r := &Reconciler{client: s, reader: s}

					return controllertest.Reconciling(r, "", "gone")
				},
				Final: func() []client.ObjectList { return []client.ObjectList{&corev1.NamespaceList{}} },
			})
		})
	}
}
