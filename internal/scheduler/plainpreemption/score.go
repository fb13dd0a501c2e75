package plainpreemption

import (
	"context"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/util"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// OrderedScoreFuncs compares candidate nodes by the criteria of
// DefaultPreemption, with the priorities of gangs instead of those of their pods.
// Without a member of a gang among the victims it returns nil, which stands for
// the criteria of DefaultPreemption.
func (p *plainPreemption) OrderedScoreFuncs(ctx context.Context, victims map[string]*extenderv1.Victims) []func(node string) int64 {
	if !hasMember(victims) {
		return nil
	}
	gangs := p.gangs(ctx)
	losses := make(map[string]victimLoss, len(victims))
	for node, v := range victims {
		losses[node] = lossOf(gangs, v)
	}

	return []func(string) int64{
		func(node string) int64 { return -losses[node].violations },
		func(node string) int64 { return -losses[node].highest },
		func(node string) int64 { return -losses[node].sum },
		func(node string) int64 { return -losses[node].pods },
		func(node string) int64 { return losses[node].started.UnixNano() },
	}
}

func hasMember(victims map[string]*extenderv1.Victims) bool {
	for _, v := range victims {
		for _, pod := range v.Pods {
			if _, ok := decide.GroupOf(pod); ok {
				return true
			}
		}
	}

	return false
}

// A victimLoss describes the victims of a node.
type victimLoss struct {
	violations   int64
	highest, sum int64 // priorities; in the sum, the lowest possible one is 0
	pods         int64
	started      time.Time // the earliest of those with the highest priority
}

func lossOf(gangs *runningGangs, victims *extenderv1.Victims) victimLoss {
	l := victimLoss{violations: victims.NumPDBViolations, highest: math.MinInt64, pods: int64(len(victims.Pods))}
	for _, pod := range victims.Pods {
		l.add(pod, int64(gangs.priority(pod)))
	}

	return l
}

func (l *victimLoss) add(pod *corev1.Pod, priority int64) {
	started := util.GetPodStartTime(pod).Time
	if priority > l.highest || priority == l.highest && started.Before(l.started) {
		l.highest, l.started = priority, started
	}
	l.sum += priority - math.MinInt32
}
