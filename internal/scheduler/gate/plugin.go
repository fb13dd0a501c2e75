package gate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// plugin is the gate before the queue, and the order in it.
type plugin struct {
	groups   *podgroups.Index
	gates    *Gates
	backOffs *backoff.BackOffs
}

var (
	_ fwk.PreEnqueuePlugin  = &plugin{}
	_ fwk.QueueSortPlugin   = &plugin{}
	_ fwk.EnqueueExtensions = &plugin{}
)

// NewPlugin returns a factory of the plugin. Without gates and back-offs, it serves trials,
// which have no queue.
func NewPlugin(groups *podgroups.Index, gates *Gates, backOffs *backoff.BackOffs) frameworkruntime.PluginFactory {
	return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
		return &plugin{groups: groups, gates: gates, backOffs: backOffs}, nil
	}
}

// Name is the plugin's.
func (*plugin) Name() string { return profiles.Gang }

// EventsToRegister is empty: see the table in wake.go of package scheduler.
func (*plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// PreEnqueue lets the pods of a gang into the queue when there are enough of them for
// every minimum, and not right after a failure. A pod that it holds has no condition
// Unschedulable, so autoscalers do not add a node for it. It runs under the queue's
// lock.
func (p *plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) (status *fwk.Status) {
	key, ok := decide.GroupOf(pod)
	if !ok {
		return nil
	}
	defer func() {
		if worker.Caught(worker.Gate, key, recover()) {
			status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the gang could not be read")
		}
	}()
	is := p.gates.Get(key)
	if !is.Known { // no event has told of the gang yet
		p.gates.Regate(key)
		is = p.gates.Get(key)
	}
	if is.Refusal != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, is.Refusal.Message)
	}
	if p.backOffs.Asked(key) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the gang has just been tried and did not fit")
	}

	return nil
}

// Less sorts by priority, then by age: a plain pod is as old as its place in
// the queue, a member of a gang as old as its group, so that members stand
// together, and so that a gang does not get younger by having to wait.
func (p *plugin) Less(a, b fwk.QueuedPodInfo) bool {
	key, _ := decide.GroupOf(a.GetPodInfo().GetPod())
	defer worker.Recovered(worker.Gate, key)
	x, y := p.rank(a), p.rank(b)
	switch {
	case x.priority != y.priority:
		return x.priority > y.priority
	case !x.since.Equal(y.since):
		return x.since.Before(y.since)
	case x.key.Namespace != y.key.Namespace:
		return x.key.Namespace < y.key.Namespace
	case x.key.Name != y.key.Name:
		return x.key.Name < y.key.Name
	default:
		return a.GetTimestamp().Before(b.GetTimestamp())
	}
}

// A rank is a place in the queue.
type rank struct {
	priority int32
	since    time.Time
	key      types.NamespacedName
}

func (p *plugin) rank(q fwk.QueuedPodInfo) rank {
	pod := q.GetPodInfo().GetPod()
	r := rank{priority: corev1helpers.PodPriority(pod), since: q.GetTimestamp()}
	if key, ok := decide.GroupOf(pod); ok {
		if pg := p.groups.Group(key); pg != nil {
			r.since, r.key = pg.CreationTimestamp.Time, key
			r.priority = p.groups.Priority(pg, []*corev1.Pod{pod})
		}
	}

	return r
}
