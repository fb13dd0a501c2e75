package stale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/testcluster"
)

// A gang that is about to be evicted keeps its grace period: if it stays after all, it is
// still stale.
func TestStaleClockSurvivesAClaim(t *testing.T) {
	const text = `{"default":{"min":4,"since":"2020-01-01T00:00:10Z"}}`
	pg := schedulertest.Group("low", 4, func(pg *v2alpha2.PodGroup) {
		pg.ResourceVersion = "7"
		pg.Annotations = map[string]string{v2alpha2.StalenessAnnotation: text}
		pg.Spec.StalenessGracePeriod = &v2alpha2.Duration{Duration: -time.Second} // no pod is evicted here
	})
	low := schedulertest.Members("low", 3, 10, func(pod *corev1.Pod) { pod.Spec.SchedulerName = settings.Name })
	groups := testcluster.Open(t, append(low, pg, schedulertest.Node(0, 8))...).Groups
	w := New(groups, nil, func(pod *corev1.Pod) bool { return pod.Spec.SchedulerName == settings.Name }, 0)
	key := schedulertest.Key("low")
	clock := func() gang.Memory { return w.observed[key].memory["default"] }
	for i := range 3 {
		for _, pod := range schedulertest.AsPods(low) {
			switch i {
			case 1: // they are claimed
				groups.Mark(pod)
			case 2:
				groups.Unmark(pod)
			}
		}
		if err := w.observe(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := clock(); got.Since == 0 || got.SatisfiedMin != 4 {
			t.Errorf("In step %d, what is known is %+v.", i, got)
		}
	}
}
