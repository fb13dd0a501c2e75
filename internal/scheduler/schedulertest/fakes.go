package schedulertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
)

// ErrBroken is what broken steps and requests return.
var ErrBroken = errors.New("broken")

// Nominations is a PodNominator that has what a test puts there.
type Nominations map[string][]fwk.PodInfo

// AddNominatedPod does nothing.
func (Nominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}

// DeleteNominatedPodIfExists does nothing.
func (Nominations) DeleteNominatedPodIfExists(*corev1.Pod) {}

// UpdateNominatedPod does nothing.
func (Nominations) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {}

// NominatedPodsForNode returns the pods of a node.
func (n Nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return slices.Clone(n[node]) }

// A Notebook records events.
type Notebook struct {
	mu     sync.Mutex
	Events []string
}

// Eventf records an event.
func (n *Notebook) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Events = append(n.Events, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

// Interrupted is a profile in which something happens while a filter runs.
type Interrupted struct {
	framework.Framework

	During func()
}

// RunFilterPluginsWithNominatedPods runs the filters, and then what happens during that.
func (i Interrupted) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	status := i.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	i.During()

	return status
}

// Scaled returns durations in a unit.
func Scaled(all []time.Duration, unit time.Duration) []time.Duration {
	for i := range all {
		all[i] /= unit
	}

	return all
}

// Counted returns how many panics a worker has recovered from while do ran.
func Counted(t *testing.T, worker string, do func()) int {
	t.Helper()
	value := func() float64 {
		n, err := testutil.GetCounterMetricValue(gangmetrics.Panics.WithLabelValues(worker))
		if err != nil {
			t.Fatal(err)
		}

		return n
	}
	before := value()
	do()

	return int(value() - before)
}
