package synthesispod

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/controllertest"
	"github.com/arbor-control/arbor/internal/synthesis"
)

// TestErrors has each request fail while the pod of a synthesis is created, and deleted.
func TestErrors(t *testing.T) {
	scheme := controllertest.Scheme(t, corev1.AddToScheme, enov1.AddToScheme)
	clock := time.Unix(1_000_000, 0)
	cases := map[string]struct {
		reason string
		change func(*enov1.Composition)
	}{
		"Begun": {"There is one pod of the synthesis, also if the answer to its creation is lost.", func(*enov1.Composition) {}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			c, s, o := given()
			c.Spec.Synthesizer.Name = s.Name
			c.Status.InFlightSynthesis.Initialized = &metav1.Time{Time: clock}
			tc.change(c)
			home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			controllertest.Check(t, controllertest.Case{
				Scheme: scheme, Objects: []client.Object{c, s, home}, Status: []client.Object{&enov1.Composition{}, &corev1.Pod{}},
				OnCreate: func(o client.Object) {
					if o.GetName() == "" {
						o.SetName(o.GetGenerateName() + "x")
					}
				},
				New: func(s *controllertest.Server) controllertest.Step {
					now := func() time.Time { return clock }
					r := &Reconciler{
						client: s, reader: s, options: o, now: now, recorder: &events.FakeRecorder{}, runner: &synthesis.Runner{Client: s, Reader: s, Now: now},
						deleted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "deleted_total", Help: "Deleted pods."}, []string{"reason"}),
					}

					return controllertest.Reconciling(r, c.Namespace, c.Name)
				},
				Final: func() []client.ObjectList { return []client.ObjectList{&enov1.CompositionList{}, &corev1.PodList{}} },
			})
		})
	}
}
