package podgroup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
)

// TestErrors has each request fail while the condition of a PodGroup is written.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, v2alpha2.AddToScheme)
	cases := map[string]struct {
		reason string
		spec   v2alpha2.PodGroupSpec
	}{
		"Valid":   {"The condition becomes True.", v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "a"}}}},
		"Invalid": {"The condition becomes False, with the reason.", v2alpha2.PodGroupSpec{SubGroups: []v2alpha2.SubGroup{{Name: "a", Parent: new("missing")}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			controllertest.Check(t, controllertest.Case{
				Scheme:  scheme,
				Objects: []client.Object{&v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "g", Generation: 1}, Spec: tc.spec}},
				Status:  []client.Object{&v2alpha2.PodGroup{}},
				New: func(s *controllertest.Server) controllertest.Step {
					r := reconcile.AsReconciler(s, &Reconciler{client: s, recorder: &events.FakeRecorder{}, now: func() time.Time { return time.Unix(1_000_000, 0) }})

					return controllertest.Reconciling(r, "n", "g")
				},
				Final: func() []client.ObjectList { return []client.ObjectList{&v2alpha2.PodGroupList{}} },
			})
		})
	}
}
