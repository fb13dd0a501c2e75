package scheduler

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

func TestSameMembers(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*v2alpha2.PodGroup)
		want   bool
	}{
		"GracePeriod": {"It does not change which pods are bound.", func(pg *v2alpha2.PodGroup) {
			pg.Spec.StalenessGracePeriod = &v2alpha2.Duration{Duration: time.Hour}
		}, true},
		"Priority":  {"Nor does the priority.", func(pg *v2alpha2.PodGroup) { pg.Spec.PriorityClassName = "x" }, true},
		"Minimum":   {"A minimum does.", func(pg *v2alpha2.PodGroup) { pg.Spec.MinMember = new(int32(3)) }, false},
		"SubGroups": {"So do subgroups.", func(pg *v2alpha2.PodGroup) { pg.Spec.SubGroups = []v2alpha2.SubGroup{{Name: "a"}} }, false},
		"Queue":     {"Another queue may not have the quota.", func(pg *v2alpha2.PodGroup) { pg.Spec.Queue = "x" }, false},
		"Topology": {"A level may be required.", func(pg *v2alpha2.PodGroup) {
			pg.Spec.TopologyConstraint.RequiredTopologyLevel = "rack"
		}, false},
		"Deleted": {"The group ends.", func(pg *v2alpha2.PodGroup) { pg.DeletionTimestamp = new(metav1.Now()) }, false},
		"Another": {"It is another group.", func(pg *v2alpha2.PodGroup) { pg.UID = types.UID("other") }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameMembers(schedulertest.Group("g", 2), schedulertest.Group("g", 2, tc.edit)); got != tc.want {
				t.Errorf("%s\nsameMembers is %t.", tc.reason, got)
			}
		})
	}
	if sameMembers(nil, schedulertest.Group("g", 2)) || sameMembers(schedulertest.Group("g", 2), nil) {
		t.Error("A group that is new, or gone, is not the same.")
	}
}
