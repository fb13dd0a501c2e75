package preempt

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
)

// The cache may still have pods that the informer no longer has.
func TestRemoveDeleted(t *testing.T) {
	cases := map[string]struct {
		reason  string
		current func(*corev1.Pod) *corev1.Pod
		nodes   []string
		fits    bool
	}{
		"There": {"Pods that exist use the room.", func(pod *corev1.Pod) *corev1.Pod { return pod }, []string{"node-0000"}, false},
		"Gone":  {"Pods that are gone do not.", func(*corev1.Pod) *corev1.Pod { return nil }, []string{"node-0000"}, true},
		"Terminating": {"Pods that terminate do not.", func(pod *corev1.Pod) *corev1.Pod {
			c := pod.DeepCopy()
			c.DeletionTimestamp = new(metav1.Now())

			return c
		}, []string{"node-0000"}, true},
		"Elsewhere": {"A node that no longer exists is ignored.", func(*corev1.Pod) *corev1.Pod { return nil }, []string{"node-0001"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := testcluster.Open(t, append(schedulertest.Members("low", 4, 10), schedulertest.Node(0, 4), schedulertest.Group("high", 1), schedulertest.Member("high", 0, 4))...)
			done, err := o.Trial.Open(t.Context(), o.Groups.Placed)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			g, why := o.Groups.Read(schedulertest.Key("high"))
			if why != nil {
				t.Fatal(why.Message)
			}
			dry, err := trialDryRun(t.Context(), o.Trial, schedulertest.Key("high"), g, 50)
			if err != nil {
				t.Fatal(err)
			}
			dry.removeDeleted(tc.nodes, tc.current, time.Now())
			fits, err := dry.Fits(t.Context(), 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if fits != tc.fits {
				t.Errorf("%s\nThe gang fits: %t", tc.reason, fits)
			}
		})
	}
}
