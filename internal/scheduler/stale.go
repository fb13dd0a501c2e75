package scheduler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// reasonStale is on pods that are evicted because their gang is broken.
const reasonStale = "GangBelowMinimum"

// mind watches for gangs, and optional subgroups, that run with fewer pods than
// their minimum. The cycle tries to mend them at once; if that has not worked
// when the grace period is over, what is left of them goes, because it holds
// room and does nothing with it.
func (r *reporter) mind(ctx context.Context, key types.NamespacedName, g *decide.Gang) error {
	left := gang.Stale(g.Tree, g.Members, g.Rules)
	grace := r.grace(g)
	r.mu.Lock()
	since, known := r.stale[key]
	switch {
	case len(left) == 0 || grace <= 0:
		delete(r.stale, key)
		r.mu.Unlock()

		return nil
	case !known:
		since = time.Now()
		r.stale[key] = since
	}
	r.mu.Unlock()
	if rest := time.Until(since.Add(grace)); rest > 0 {
		r.status.AddAfter(key, rest)

		return nil
	}
	var pods []*corev1.Pod
	for _, i := range left {
		// One that succeeded holds no room, and somebody may want to read what it
		// said.
		if g.Pods[i].Status.Phase != corev1.PodSucceeded {
			pods = append(pods, g.Pods[i])
		}
	}

	return r.s.evictAll(ctx, pods, reasonStale, "stale", fmt.Sprintf("PodGroup %s has been below its minimum for %s", key, grace))
}

// grace is how long a gang may stay below its minimum; 0 is for ever.
func (r *reporter) grace(g *decide.Gang) time.Duration {
	if own := g.Group.Spec.StalenessGracePeriod; own != nil {
		return max(0, own.Duration)
	}

	return r.s.options.StaleGrace
}
