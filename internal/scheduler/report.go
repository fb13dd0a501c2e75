package scheduler

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

const (
	reporters = 8
	// settle is how long the status of a group waits for further changes, so
	// that a gang of a hundred pods makes a few writes and not a hundred.
	settle = 200 * time.Millisecond
	// lasting is how long a group must have a reason that most groups have for a
	// moment only before it is written.
	lasting = 2 * time.Second
	// steady is how long a message is kept when only its figures have changed.
	steady = 30 * time.Second
	// Status writes per second, while gangs are being placed and otherwise:
	// binding pods comes first.
	busyRate, idleRate = 20, 200
	// rush is how long after the last cycle the higher rate is not used yet.
	rush = 500 * time.Millisecond
	// later is when a write that had to yield is tried again.
	later = time.Second
)

// A reporter writes what was decided: to the pods, to the PodGroup, and as
// events. It decides nothing itself. It reads the state at the time of writing,
// and skips writes that would change nothing.
type reporter struct {
	groups   *groups
	recorder events.EventRecorder
	// answers reports whether a pod asks for this scheduler.
	answers func(*corev1.Pod) bool
	// binding returns why the minimum of a gang is not bound yet, if that takes long.
	binding func(types.NamespacedName) (*decide.Refusal, bool)
	// pods has the groups whose pods may need a condition, status those whose
	// PodGroup may need another status.
	pods, status workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// slow and fast limit the status writes; busy is the time of the last cycle.
	slow, fast flowcontrol.RateLimiter
	busy       atomic.Int64
	// leads is set once the queues are being worked off.
	leads atomic.Bool
	// narrow is set if the CRD, installed with another scheduler, has no counts.
	narrow atomic.Bool

	mu      sync.Mutex
	records map[types.NamespacedName]record
}

// A record is what the reporter remembers about a group.
type record struct {
	outcome  *decide.Outcome
	since    time.Time // of the outcome's message
	progress *decide.Progress
	passing  time.Time // since when the group has a passing reason; zero if it has not
	written  time.Time // when its status was last written
}

// progress is what happens to a gang between two decisions. The reason is one of
// the API package: ReasonPreempting, ReasonBinding and so on.
type progress struct{ reason, message string }

func newReporter(
	groups *groups, recorder events.EventRecorder, answers func(*corev1.Pod) bool, binding func(types.NamespacedName) (*decide.Refusal, bool),
) *reporter {
	queue := func() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	}

	return &reporter{
		groups: groups, recorder: recorder, answers: answers, binding: binding,
		pods: queue(), status: queue(),
		slow: flowcontrol.NewTokenBucketRateLimiter(busyRate, busyRate), fast: flowcontrol.NewTokenBucketRateLimiter(idleRate, idleRate),
		records: map[types.NamespacedName]record{},
	}
}

// decided takes the outcome of a cycle. A gang that fits has no more progress to
// report but that of its binding.
func (r *reporter) decided(key types.NamespacedName, o *decide.Outcome) {
	r.update(key, func(is *record) {
		now := time.Now()
		if was := is.outcome; was != nil && was.About == o.About && decide.Alike(was.Message, o.Message) && now.Sub(is.since) < steady {
			o.Message = was.Message
		} else {
			is.since = now
		}
		is.outcome = o
		if o.Decision != nil && o.Decision.Fits {
			is.progress = nil
		}
	})
	if len(o.NoRoom) > 0 || o.Error != nil {
		r.pods.Add(key)
	}
	r.touch(key)
}

// note takes the progress of a gang since its last decision: the condition
// Scheduled is False with that reason as long as the generation matches and the
// gang is not placed. Nil ends it.
func (r *reporter) note(key types.NamespacedName, uid types.UID, generation int64, p *progress) {
	r.update(key, func(is *record) {
		is.progress = nil
		if p != nil {
			is.progress = &decide.Progress{About: decide.About{UID: uid, Generation: generation}, Reason: p.reason, Message: p.message}
		}
	})
	r.touch(key)
}

// touch queues a group whose status may have to change. Before this replica
// leads, the queue would only grow; once it does, it queues all groups.
func (r *reporter) touch(key types.NamespacedName) {
	if r.leads.Load() {
		r.status.AddAfter(key, settle)
	}
}

// forget drops the record of a group that was deleted.
func (r *reporter) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.records, key)
}

func (r *reporter) last(key types.NamespacedName) record {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.records[key]
}

func (r *reporter) update(key types.NamespacedName, change func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.records[key]
	change(&is)
	r.records[key] = is
}

func (r *reporter) run(ctx context.Context) {
	r.leads.Store(true)
	for _, key := range r.groups.keys() {
		r.touch(key)
	}
	for range reporters {
		go drain(ctx, workerConditions, r.pods, r.writePodConditions)
	}
	for range reporters / 2 {
		go drain(ctx, workerStatus, r.status, r.writeGroupStatus)
	}
	<-ctx.Done()
	r.pods.ShutDown()
	r.status.ShutDown()
}

// facts reads the present state of a group, once.
func (r *reporter) facts(key types.NamespacedName) *decide.Facts {
	is := r.last(key)
	f := &decide.Facts{Group: r.groups.group(key), Pods: r.groups.members(key), Outcome: is.outcome, Progress: is.progress}
	if f.Group == nil {
		f.Refusal = decide.NotFound(key)

		return f
	}
	if f.Gang, f.Refusal = decide.Read(f.Group, f.Pods, r.groups.rules); f.Gang != nil {
		f.Gang.Unbound = r.unbound(f.Gang.Pods)
	}
	if slow, ok := r.binding(key); ok {
		f.Progress = &decide.Progress{About: decide.Spec(f.Group), Reason: slow.Reason, Message: slow.Message}
	}
	f.Priority = r.groups.priority(f.Group, f.Pods)
	if name := f.Group.Spec.PriorityClassName; name != "" {
		if class, err := r.groups.classes.Get(name); err == nil {
			f.Class = class
		}
	}

	return f
}

// unbound returns the pods that have a node here and not at the API server yet.
func (r *reporter) unbound(pods []*corev1.Pod) map[types.UID]bool {
	found := map[types.UID]bool{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		o, ok, err := r.groups.pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
		if known, isPod := o.(*corev1.Pod); ok && err == nil && isPod && known.UID == pod.UID && known.Spec.NodeName == "" {
			found[pod.UID] = true
		}
	}

	return found
}
