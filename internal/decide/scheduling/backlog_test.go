package scheduling_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

func TestWaits(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	group := func(status metav1.ConditionStatus, reason string, since time.Time) *v2alpha2.PodGroup {
		return &v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
			Status: v2alpha2.PodGroupStatus{Conditions: []v2alpha2.PodGroupCondition{
				{Type: v2alpha2.PodGroupValid, Status: metav1.ConditionFalse, Reason: "Cycle"},
				{Type: v2alpha2.PodGroupScheduled, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)},
			}},
		}
	}
	deleted := group(metav1.ConditionFalse, v2alpha2.ReasonUnschedulable, noon)
	deleted.DeletionTimestamp = new(metav1.NewTime(noon))
	cases := map[string]struct {
		reason string
		groups []*v2alpha2.PodGroup
		want   map[string]scheduling.Backlog
	}{
		"None":      {"Without groups nothing waits.", nil, map[string]scheduling.Backlog{}},
		"Scheduled": {"A gang that runs does not wait.", []*v2alpha2.PodGroup{group(metav1.ConditionTrue, v2alpha2.ReasonScheduled, noon)}, map[string]scheduling.Backlog{}},
		"Unseen":    {"What no scheduler has looked at may belong to another one.", []*v2alpha2.PodGroup{{}}, map[string]scheduling.Backlog{}},
		"Deleted":   {"What is deleted waits for nothing.", []*v2alpha2.PodGroup{deleted, group(metav1.ConditionFalse, v2alpha2.ReasonTerminating, noon)}, map[string]scheduling.Backlog{}},
		"Oldest": {
			"The first one counts, in whatever order they are.",
			[]*v2alpha2.PodGroup{
				group(metav1.ConditionFalse, v2alpha2.ReasonUnschedulable, noon.Add(time.Minute)), group(metav1.ConditionFalse, v2alpha2.ReasonPreempting, noon),
				group(metav1.ConditionFalse, v2alpha2.ReasonBinding, noon.Add(time.Second)),
			},
			map[string]scheduling.Backlog{scheduling.CauseRoom: {Groups: 3, Since: noon}},
		},
		"Causes": {
			"What the scheduler, a controller of pods and the author have to do is counted apart.",
			[]*v2alpha2.PodGroup{
				group(metav1.ConditionFalse, v2alpha2.ReasonTooFewPods, noon), group(metav1.ConditionFalse, v2alpha2.ReasonSchedulersDiffer, noon),
				group(metav1.ConditionFalse, "MadeUp", noon.Add(time.Second)), group(metav1.ConditionFalse, v2alpha2.ReasonPending, noon),
			},
			map[string]scheduling.Backlog{scheduling.CausePods: {1, noon}, scheduling.CauseGroup: {2, noon}, scheduling.CauseRoom: {1, noon}},
		},
		"NoTime": {"Without a time, the group waits since it was created.", []*v2alpha2.PodGroup{group(metav1.ConditionFalse, v2alpha2.ReasonUnschedulable, time.Time{})}, map[string]scheduling.Backlog{scheduling.CauseRoom: {1, noon.Add(-time.Hour)}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scheduling.Waits(tc.groups)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
