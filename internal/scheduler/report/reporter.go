package report

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
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
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

// A Reporter writes what was decided: to the pods, to the PodGroup, and as
// events. It decides nothing itself. It reads the state at the time of writing,
// and skips writes that would change nothing.
type Reporter struct {
	groups   *podgroups.Index
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

// Progress is what happens to a gang between two decisions. The reason is one of
// the API package: ReasonPreempting, ReasonBinding and so on.
type Progress struct{ Reason, Message string }

// New returns a reporter. answers reports whether a pod asks for this scheduler, and binding why
// the minimum of a gang is not bound yet.
func New(
	groups *podgroups.Index, recorder events.EventRecorder, answers func(*corev1.Pod) bool, binding func(types.NamespacedName) (*decide.Refusal, bool),
) *Reporter {
	queue := func() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	}

	return &Reporter{
		groups: groups, recorder: recorder, answers: answers, binding: binding,
		pods: queue(), status: queue(),
		slow: flowcontrol.NewTokenBucketRateLimiter(busyRate, busyRate), fast: flowcontrol.NewTokenBucketRateLimiter(idleRate, idleRate),
		records: map[types.NamespacedName]record{},
	}
}

// Decided takes the outcome of a cycle. A gang that fits has no more progress to
// report but that of its binding.
func (r *Reporter) Decided(key types.NamespacedName, o *decide.Outcome) {
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
	r.Touch(key)
}

// Note takes the progress of a gang since its last decision: the condition
// Scheduled is False with that reason as long as the generation matches and the
// gang is not placed. Nil ends it.
func (r *Reporter) Note(key types.NamespacedName, uid types.UID, generation int64, p *Progress) {
	r.update(key, func(is *record) {
		is.progress = nil
		if p != nil {
			is.progress = &decide.Progress{About: decide.About{UID: uid, Generation: generation}, Reason: p.Reason, Message: p.Message}
		}
	})
	r.Touch(key)
}

// Tried has status writes yield to the bindings of a gang that was tried just now.
func (r *Reporter) Tried() { r.busy.Store(time.Now().UnixNano()) }

// Touch queues a group whose status may have to change. Before this replica
// leads, the queue would only grow; once it does, it queues all groups.
func (r *Reporter) Touch(key types.NamespacedName) {
	if r.leads.Load() {
		r.status.AddAfter(key, settle)
	}
}

// forget drops the record of a group that was deleted.
func (r *Reporter) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.records, key)
}

// Outcome returns the last outcome that was reported of a gang, nil if there is none.
func (r *Reporter) Outcome(key types.NamespacedName) *decide.Outcome { return r.last(key).outcome }

// Progress returns what happens to a gang since its last outcome, nil if nothing does.
func (r *Reporter) Progress(key types.NamespacedName) *decide.Progress { return r.last(key).progress }

func (r *Reporter) last(key types.NamespacedName) record {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.records[key]
}

func (r *Reporter) update(key types.NamespacedName, change func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.records[key]
	change(&is)
	r.records[key] = is
}

// Run writes until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	r.leads.Store(true)
	for _, key := range r.groups.Keys() {
		r.Touch(key)
	}
	for range reporters {
		go worker.Drain(ctx, worker.Conditions, r.pods, r.writePodConditions)
	}
	for range reporters / 2 {
		go worker.Drain(ctx, worker.Status, r.status, r.writeGroupStatus)
	}
	<-ctx.Done()
	r.pods.ShutDown()
	r.status.ShutDown()
}

// Facts reads the present state of a group, once.
func (r *Reporter) Facts(key types.NamespacedName) *decide.Facts {
	is := r.last(key)
	f := &decide.Facts{Group: r.groups.Group(key), Pods: r.groups.Members(key), Outcome: is.outcome, Progress: is.progress}
	if f.Group == nil {
		f.Refusal = decide.NotFound(key)

		return f
	}
	if f.Gang, f.Refusal = decide.Read(f.Group, f.Pods, r.groups.Rules); f.Gang != nil {
		f.Gang.Unbound = r.unbound(f.Gang.Pods)
	}
	if slow, ok := r.binding(key); ok {
		f.Progress = &decide.Progress{About: decide.Spec(f.Group), Reason: slow.Reason, Message: slow.Message}
	}
	f.Priority = r.groups.Priority(f.Group, f.Pods)
	if name := f.Group.Spec.PriorityClassName; name != "" {
		if class, err := r.groups.Classes.Get(name); err == nil {
			f.Class = class
		}
	}

	return f
}

// unbound returns the pods that have a node here and not at the API server yet.
func (r *Reporter) unbound(pods []*corev1.Pod) map[types.UID]bool {
	found := map[types.UID]bool{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		o, ok, err := r.groups.Pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
		if known, isPod := o.(*corev1.Pod); ok && err == nil && isPod && known.UID == pod.UID && known.Spec.NodeName == "" {
			found[pod.UID] = true
		}
	}

	return found
}
