package scheduling

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// Causes are what groups can wait for.
const (
	// CauseRoom means that the scheduler has to place the group: there is no room,
	// victims terminate, pods are being bound, or an attempt failed.
	CauseRoom = "room"
	// CausePods means that too few pods of the group exist.
	CausePods = "pods"
	// CauseGroup means that the group or its pods have to be changed first.
	CauseGroup = "group"
)

// Causes returns all of them.
func Causes() []string { return []string{CauseRoom, CausePods, CauseGroup} }

// causes of the reasons that do not mean CauseGroup.
var causes = map[string]string{
	v2alpha2.ReasonTooFewPods:              CausePods,
	v2alpha2.ReasonPending:                 CauseRoom,
	v2alpha2.ReasonUnschedulable:           CauseRoom,
	v2alpha2.ReasonSchedulerError:          CauseRoom,
	v2alpha2.ReasonBinding:                 CauseRoom,
	v2alpha2.ReasonPreempting:              CauseRoom,
	v2alpha2.ReasonPreemptionSearchTooLong: CauseRoom,
	v2alpha2.ReasonPreemptionUnproven:      CauseRoom,
	v2alpha2.ReasonPreemptionBlocked:       CauseRoom,
	v2alpha2.ReasonReservationExpired:      CauseRoom,
}

// A Backlog is how many groups wait for one thing, and since when the first of them does.
type Backlog struct {
	Groups int
	Since  time.Time
}

// Waits counts the groups whose condition Scheduled is False, by what they wait for. Groups that
// are being deleted, and those that no scheduler has reported about, are not counted.
func Waits(groups []*v2alpha2.PodGroup) map[string]Backlog {
	all := map[string]Backlog{}
	for _, pg := range groups {
		c := conditionOf(pg.Status)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason == v2alpha2.ReasonTerminating || !pg.DeletionTimestamp.IsZero() {
			continue
		}
		cause, known := causes[c.Reason]
		if !known {
			cause = CauseGroup
		}
		since := c.LastTransitionTime.Time
		if since.IsZero() {
			since = pg.CreationTimestamp.Time
		}
		b := all[cause]
		if b.Groups == 0 || since.Before(b.Since) {
			b.Since = since
		}
		b.Groups++
		all[cause] = b
	}

	return all
}
