package scheduler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// countPeriod is how often the groups that wait are counted.
const countPeriod = 10 * time.Second

var (
	waitingGroups = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "waiting_groups", StabilityLevel: metrics.ALPHA,
		Help: "PodGroups whose condition Scheduled is False, by cause: room (the scheduler has to place them), pods (too few exist), group (the group or its pods have to be changed). Every replica counts all of them.",
	}, []string{"cause"})
	waitingSince = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "waiting_since_timestamp_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Unix time since which the first of the PodGroups that wait does so, by cause. Absent for a cause that no group waits for.",
	}, []string{"cause"})
)

// countWaiting keeps the metrics of groups that wait current, until ctx ends.
func (s *Scheduler) countWaiting(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { s.countOnce() }, countPeriod)
}

func (s *Scheduler) countOnce() {
	var all []*v2alpha2.PodGroup
	for _, o := range s.groups.all.GetStore().List() {
		if pg, ok := o.(*v2alpha2.PodGroup); ok {
			all = append(all, pg)
		}
	}
	waits := decide.Waits(all)
	for _, cause := range decide.Causes() {
		b := waits[cause]
		waitingGroups.WithLabelValues(cause).Set(float64(b.Groups))
		if b.Groups == 0 {
			waitingSince.DeleteLabelValues(cause)

			continue
		}
		waitingSince.WithLabelValues(cause).Set(float64(b.Since.Unix()))
	}
}
