package podgroups

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// The metrics show how many groups wait and since when, and nothing of groups that wait no more.
func TestCountWaiting(t *testing.T) {
	since := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	pg := &v2alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "bert"},
		Status: v2alpha2.PodGroupStatus{Conditions: []v2alpha2.PodGroupCondition{{
			Type: v2alpha2.PodGroupScheduled, Status: metav1.ConditionFalse, Reason: v2alpha2.ReasonUnschedulable, LastTransitionTime: metav1.NewTime(since),
		}}},
	}
	g := &Index{PodGroups: cache.NewSharedIndexInformer(&cache.ListWatch{}, &v2alpha2.PodGroup{}, 0, cache.Indexers{})}
	if err := g.PodGroups.GetStore().Add(pg); err != nil {
		t.Fatal(err)
	}
	const heads = `# HELP arbor_gang_waiting_groups [ALPHA] PodGroups whose condition Scheduled is False, by cause: room (the scheduler has to place them), pods (too few exist), group (the group or its pods have to be changed). Every replica counts all of them.
# TYPE arbor_gang_waiting_groups gauge
arbor_gang_waiting_groups{cause="group"} 0
arbor_gang_waiting_groups{cause="pods"} 0
`
	for name, want := range map[string]string{
		"waits": heads + `arbor_gang_waiting_groups{cause="room"} 1
# HELP arbor_gang_waiting_since_timestamp_seconds [ALPHA] Unix time since which the first of the PodGroups that wait does so, by cause. Absent for a cause that no group waits for.
# TYPE arbor_gang_waiting_since_timestamp_seconds gauge
arbor_gang_waiting_since_timestamp_seconds{cause="room"} 1.777896e+09
`,
		"placed": heads + `arbor_gang_waiting_groups{cause="room"} 0
`,
	} {
		g.countOnce()
		if name == "placed" {
			pg.Status.Conditions[0].Status = metav1.ConditionTrue
			g.countOnce()
		}
		if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), "arbor_gang_waiting_groups", "arbor_gang_waiting_since_timestamp_seconds"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		pg.Status.Conditions[0].Status = metav1.ConditionFalse
	}
}
