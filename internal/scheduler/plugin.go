package scheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// pluginName is the name in profiles, and in the reasons why a pod waits.
const pluginName = "ArborGang"

// plugin is the gate before the queue, and the order in it.
type plugin struct{ s *Scheduler }

var (
	_ fwk.PreEnqueuePlugin  = &plugin{}
	_ fwk.QueueSortPlugin   = &plugin{}
	_ fwk.EnqueueExtensions = &plugin{}
)

func (s *Scheduler) newPlugin(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return &plugin{s: s}, nil
}

// Name is the plugin's.
func (*plugin) Name() string { return pluginName }

// EventsToRegister is empty: whom the gate holds is woken by the group's own
// events and by nothing else. Registering PodGroups here would ask about every
// pending pod at every event, which is quadratic.
func (*plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// PreEnqueue lets the pods of a gang into the queue when there are enough of
// them for every minimum, and not right after a failure. A pod that it holds
// has no condition Unschedulable, so nobody buys a node for it.
func (p *plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	key, ok := decide.GroupOf(pod)
	if !ok {
		return nil
	}
	if !p.s.wasReady(key) {
		if why := p.s.hold(key); why != nil {
			p.s.reporter.touch(key)

			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why.Message)
		}
		p.s.ready.Store(key, time.Now())
	}
	if p.s.pace.hold(key) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the gang has just been tried and did not fit")
	}

	return nil
}

// fresh is how long a gang that was complete is taken to be so still. The cycle
// looks again; this keeps the gate from counting a gang of hundreds once for each
// of its pods.
const fresh = 200 * time.Millisecond

// wasReady says whether a gang was found complete just now.
func (s *Scheduler) wasReady(key types.NamespacedName) bool {
	at, ok := s.ready.Load(key)
	since, isTime := at.(time.Time)

	return ok && isTime && time.Since(since) < fresh
}

// hold says why a gang may not be tried.
func (s *Scheduler) hold(key types.NamespacedName) *decide.Refusal {
	g, why := s.groups.read(key)
	if why != nil {
		return why
	}
	if lack := gang.Missing(g.Tree, g.Members, s.rules); lack != nil {
		return &decide.Refusal{Reason: v2alpha2.ReasonTooFewPods, Message: lack.Sentence(g.Tree)}
	}

	return nil
}

// Less sorts by priority, then by age: a plain pod is as old as its place in
// the queue, a member of a gang as old as its group, so that members stand
// together, and so that a gang does not get younger by having to wait.
func (p *plugin) Less(a, b fwk.QueuedPodInfo) bool {
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
		if pg := p.s.groups.group(key); pg != nil {
			r.since, r.key = pg.CreationTimestamp.Time, key
			r.priority = p.s.groups.priority(pg, []*corev1.Pod{pod})
		}
	}

	return r
}
