package podgroups

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
)

// countPeriod is how often the groups that wait are counted.
const countPeriod = 10 * time.Second

// CountWaiting keeps the metrics of groups that wait current, until ctx ends.
func (g *Index) CountWaiting(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { g.countOnce() }, countPeriod)
}

func (g *Index) countOnce() {
	var all []*v2alpha2.PodGroup
	for _, o := range g.PodGroups.GetStore().List() {
		if pg, ok := o.(*v2alpha2.PodGroup); ok {
			all = append(all, pg)
		}
	}
	waits := decide.Waits(all)
	for _, cause := range decide.Causes() {
		b := waits[cause]
		gangmetrics.WaitingGroups.WithLabelValues(cause).Set(float64(b.Groups))
		if b.Groups == 0 {
			gangmetrics.WaitingSince.DeleteLabelValues(cause)

			continue
		}
		gangmetrics.WaitingSince.WithLabelValues(cause).Set(float64(b.Since.Unix()))
	}
}
