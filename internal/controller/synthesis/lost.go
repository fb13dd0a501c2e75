package synthesis

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
)

// lostSlices remembers since when compositions lack slices of their current synthesis.
type lostSlices struct {
	mu  sync.Mutex
	all map[types.NamespacedName]time.Time
}

// since is since when a composition lacks slices, zero if it does not.
func (l *lostSlices) since(name types.NamespacedName, lost bool, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !lost {
		delete(l.all, name)

		return time.Time{}
	}
	if _, known := l.all[name]; !known {
		if l.all == nil {
			l.all = map[types.NamespacedName]time.Time{}
		}
		l.all[name] = now
	}

	return l.all[name]
}

// reportLost records an event about slices that delivery has not restored: which objects they had
// is not known any more.
func (r *Reconciler) reportLost(v decide.View) {
	var names []string
	for i, s := range v.Current {
		if s == nil && i < len(v.Composition.Status.CurrentSynthesis.ResourceSlices) {
			names = append(names, v.Composition.Status.CurrentSynthesis.ResourceSlices[i].Name)
		}
	}
	if len(names) > 0 && !v.Composition.Abandoned() {
		r.worker.recorder.Eventf(eventTarget(v.Composition), nil, corev1.EventTypeWarning, "SliceLost", "Synthesize", "%s", decide.Lost(strings.Join(names, ", ")))
	}
}
