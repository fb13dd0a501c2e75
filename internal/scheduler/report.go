package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

const (
	reporters = 8
	// settle is how long the status of a group waits for further changes, so
	// that a gang of a hundred pods makes a few writes and not a hundred.
	settle = 200 * time.Millisecond
	// Writes of status per second, while gangs are being placed and when none
	// are: in a rush, pods are bound first and counted afterwards.
	busyRate, idleRate = 20, 200
	// rush is how long after the last gang there still is one.
	rush = 500 * time.Millisecond
)

// steady is how long a sentence is kept when only its figures have changed.
const steady = 30 * time.Second

// A verdict is what the last cycle said of a gang.
type verdict struct {
	decision *gang.Decision
	refusal  *decide.Refusal
	uid      types.UID // of the group that it was about
	spec     int64     // its generation
	sentence string    // for those who wait
	since    time.Time // that this is the sentence
}

// obstacle is the decision as long as it stands in the way. Pods of one that fits
// have their places by now, and are counted there.
func (v verdict) obstacle() *gang.Decision {
	if v.decision == nil || v.decision.Fits {
		return nil
	}

	return v.decision
}

// A reporter tells people what was decided: on the pods, on the PodGroup, in
// events. It does so in its own time, from what is true when it writes, and it
// writes nothing that is there already.
type reporter struct {
	s        *Scheduler
	client   clientset.Interface
	groups   *rest.RESTClient
	recorder events.EventRecorder
	// pods has gangs whose members must be told something, status those whose
	// PodGroup may have to change.
	pods, status workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// slow and fast bound how often status is written; busy is when the last
	// gang was tried.
	slow, fast flowcontrol.RateLimiter
	busy       atomic.Int64
	// leads says that there is somebody to work off the queues.
	leads atomic.Bool
	// narrow says that the definition of PodGroups, which somebody else has
	// installed, has no room for counts.
	narrow atomic.Bool

	mu       sync.Mutex
	verdicts map[types.NamespacedName]verdict
	stale    map[types.NamespacedName]time.Time
}

func newReporter(s *Scheduler, client clientset.Interface, groups *rest.RESTClient, recorder events.EventRecorder) *reporter {
	queue := func() workqueue.TypedRateLimitingInterface[types.NamespacedName] {
		return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	}

	return &reporter{
		s: s, client: client, groups: groups, recorder: recorder,
		pods: queue(), status: queue(),
		slow: flowcontrol.NewTokenBucketRateLimiter(busyRate, busyRate), fast: flowcontrol.NewTokenBucketRateLimiter(idleRate, idleRate),
		verdicts: map[types.NamespacedName]verdict{}, stale: map[types.NamespacedName]time.Time{},
	}
}

// decided is called by the cycle.
func (r *reporter) decided(key types.NamespacedName, v verdict) {
	v.since = time.Now()
	r.mu.Lock()
	if was := r.verdicts[key]; was.uid == v.uid && was.spec == v.spec && decide.Alike(was.sentence, v.sentence) && v.since.Sub(was.since) < steady {
		v.sentence, v.since = was.sentence, was.since
	}
	r.verdicts[key] = v
	r.mu.Unlock()
	r.pods.Add(key)
	r.touch(key)
}

// touch has the group's status looked at soon. Before this replica leads, that
// would only pile up: when it does, it looks at all of them.
func (r *reporter) touch(key types.NamespacedName) {
	if r.leads.Load() {
		r.status.AddAfter(key, settle)
	}
}

// forget drops what is known of a group that is gone.
func (r *reporter) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.verdicts, key)
	r.s.ready.Delete(key)
	delete(r.stale, key)
}

func (r *reporter) last(key types.NamespacedName) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.verdicts[key]
}

func (r *reporter) run(ctx context.Context) {
	r.leads.Store(true)
	for _, key := range r.s.groups.keys() {
		r.touch(key)
	}
	for range reporters {
		go r.work(ctx, r.pods, r.tellPods)
	}
	for range reporters / 2 {
		go r.work(ctx, r.status, r.tellGroup)
	}
	<-ctx.Done()
	r.pods.ShutDown()
	r.status.ShutDown()
}

func (r *reporter) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName], do func(context.Context, types.NamespacedName) error) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		err := do(ctx, key)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(1).Info("Could not write what was decided; trying again", "podGroup", key, "err", err)
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// tellPods writes to every member that waits why it does.
func (r *reporter) tellPods(ctx context.Context, key types.NamespacedName) error {
	v := r.last(key)
	why := r.s.hold(key)
	if why == nil {
		why = v.refusal
	}
	if why == nil && v.sentence == "" {
		return nil // nobody has tried yet
	}
	var failed error
	for _, pod := range r.s.groups.members(key) {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || !r.s.answers(pod) {
			continue
		}
		if err := r.tellPod(ctx, pod, decide.Waiting(v.sentence, why)); err != nil {
			failed = err
		}
	}

	return failed
}

func (r *reporter) tellPod(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) error {
	status := pod.Status.DeepCopy()
	condition.ObservedGeneration = podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, corev1.PodScheduled)
	if !podutil.UpdatePodCondition(status, condition) {
		return nil // it is there
	}
	if err := util.PatchPodStatus(ctx, r.client, pod.Name, pod.Namespace, &pod.Status, status); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}

		return fmt.Errorf("cannot write the condition of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.recorder.Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", condition.Message)

	return nil
}

// tellGroup brings the status of a PodGroup up to date, and ends gangs that have
// been below their minimum for too long.
func (r *reporter) tellGroup(ctx context.Context, key types.NamespacedName) error {
	pg := r.s.groups.group(key)
	if pg == nil {
		r.forget(key)
		r.pods.Add(key) // they wait for a group that is not there
		r.s.preemptor.add(key)

		return nil
	}
	if pods := r.s.groups.members(key); len(pods) > 0 && !slices.ContainsFunc(pods, r.s.answers) {
		return nil // another scheduler's
	}
	v := r.last(key)
	if v.uid != "" && v.uid != pg.UID {
		v = verdict{} // about another group of that name
	}
	g, why := r.s.groups.read(key)
	if v.refusal != nil || r.s.hold(key) != nil {
		r.pods.Add(key)
		r.s.preemptor.add(key) // it keeps no room for a gang that is not tried
	}
	if g != nil {
		if err := r.mind(ctx, key, g); err != nil {
			return err
		}
	}
	want := decide.Show(pg, g, v.obstacle(), why, metav1.Now())
	decide.Keep(pg, &want)

	return r.show(ctx, pg, &want)
}

// show writes the scheduler's part of the status: one condition and the counts.
// The list of conditions is written as a whole, so the write fails if anybody
// else wrote in between.
func (r *reporter) show(ctx context.Context, pg *v2alpha2.PodGroup, want *v2alpha2.PodGroupStatus) error {
	if decide.Shown(pg, *want, !r.narrow.Load()) {
		return nil
	}
	r.give(ctx)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pg.UID, "resourceVersion": pg.ResourceVersion},
		"status":   map[string]any{"conditions": want.Conditions, "placed": want.Placed, "subGroups": want.SubGroups},
	})
	if err != nil {
		return err
	}
	now := &v2alpha2.PodGroup{}
	err = r.groups.Patch(types.MergePatchType).Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).SubResource("status").
		Param("fieldManager", Name).Body(patch).Do(ctx).Into(now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write the status of PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
	}
	r.narrow.Store(want.Placed != nil && now.Status.Placed == nil)
	if kind, c := decide.Transition(pg, *want); c != nil {
		r.recorder.Eventf(reference(pg), nil, kind, c.Reason, "Scheduling", "%s", c.Message)
	}

	return nil
}

// give lets whoever is placing pods go first.
func (r *reporter) give(ctx context.Context) {
	limit := r.fast
	if time.Since(time.Unix(0, r.busy.Load())) < rush {
		limit = r.slow
	}
	_ = limit.Wait(ctx) // it ends early when everything does
}

// preempted tells whom a gang has sent away.
func (r *reporter) preempted(key types.NamespacedName, victims int) {
	if pg := r.s.groups.group(key); pg != nil {
		r.recorder.Eventf(reference(pg), nil, corev1.EventTypeNormal, "Preempting", "Scheduling", "%d less important pods make room for it", victims)
	}
}

// reference is for the recorder, which does not know the kind.
func reference(pg *v2alpha2.PodGroup) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v2alpha2.GroupVersion.String(), Kind: "PodGroup",
		Namespace: pg.Namespace, Name: pg.Name, UID: pg.UID, ResourceVersion: pg.ResourceVersion,
	}
}
