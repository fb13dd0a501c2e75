package scheduler

import (
	"context"
	"errors"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// bindsAtOnce is how many requests to bind are under way at a time. The API
// server takes 100 requests per connection, and each request that finds no room
// in one opens another. With 100 requests at a time 1,000 bindings open about 20
// connections and take half as long as with 50; with 200 they open 140 and take
// longer.
const bindsAtOnce = 100

// A binding is a round of one gang with kube-scheduler's framework.
type binding struct {
	binder *binder
	t      *boundGang
	ctx    context.Context //nolint:containedctx // it outlives the cycle
	held   []holding
	round  *round
	// nominated members have a nominatedNodeName that was written here.
	nominated []bool
}

var _ roundSteps = &binding{}

// A binder binds gangs that have their places.
type binder struct {
	binderDeps

	// rounds are the gangs that are being bound.
	rounds *rounds
	// slots has one for each request to bind that may be under way.
	slots *slots
}

// binderDeps is what a binder needs.
type binderDeps struct {
	kube       *kubescheduler.Scheduler
	groups     *groups
	backOffs   *backOffs
	unprepared *unprepared
	// timeout is how long it may take until the minimum of a gang is ready to be bound.
	timeout time.Duration
	// preemptor and reporter follow what happens to a gang.
	preemptor bindingPreemptor
	reporter  bindingReporter
	// reserved reports whether room is reserved for a gang.
	reserved func(types.NamespacedName) bool
	// putBack returns a pod to the queue, and activate moves the pods that plugins asked for
	// in the cycle of another one.
	putBack  func(ctx context.Context, q *framework.QueuedPodInfo, rejectors sets.Set[string])
	activate func(context.Context, holding)
}

// bindingPreemptor is told about the places of a gang.
type bindingPreemptor interface {
	touch(key types.NamespacedName)
	gone(pod types.UID)
	cleanUpLater(key types.NamespacedName)
}

// bindingReporter is told about the state of a gang.
type bindingReporter interface {
	touch(key types.NamespacedName)
	decided(key types.NamespacedName, outcome *decide.Outcome)
}

// A boundGang is a gang that was tried and fits.
type boundGang struct {
	key     types.NamespacedName
	gang    *decide.Gang
	waiting []*framework.QueuedPodInfo // by member; nil for those that did not wait
	fw      framework.Framework
	began   time.Time
}

func newBinder(deps binderDeps, rounds *rounds) *binder {
	return &binder{binderDeps: deps, rounds: rounds, slots: newSlots(bindsAtOnce)}
}

// bindAll binds the members that have a place, of which the first ones are
// required, in the background.
func (s *binder) bindAll(ctx context.Context, t *boundGang, held []holding, required int) {
	if len(held) == 0 {
		return
	}
	b := &binding{binder: s, t: t, ctx: ctx, held: held, nominated: make([]bool, len(held))}
	b.round = newRound(ctx, safeSteps{b, t.key}, len(held), required, chains(held), s.timeout, func() { s.reporter.touch(t.key) })
	for m, h := range held {
		// A member that waits for the others can be preempted without deleting it.
		t.fw.AddPodInPreBind(h.pod.UID, b.round.members[m].cancel)
	}
	s.rounds.add(t.key, b)
	go func() { //nolint:contextcheck // the round has a context of its own, which outlives the cycle
		count := metrics.Goroutines.WithLabelValues(metrics.Binding)
		count.Add(float64(len(held)))
		defer count.Add(-float64(len(held)))
		defer s.reporter.touch(t.key)
		defer s.rounds.remove(t.key, b)
		defer recovered(workerBinding, t.key)
		b.round.run()
	}()
}

// permit waits for the Permit plugins that delay the pod.
func (b *binding) permit(ctx context.Context, m int) error {
	fw, h := b.t.fw, b.held[m]
	flight := fw.RunPreBindPreFlights(ctx, h.state, h.pod, h.node)
	if flight.Code() == fwk.Error || flight.IsRejected() {
		return failedWith(flight)
	}
	if flight.IsSuccess() || fw.WillWaitOnPermit(ctx, h.pod) {
		b.nominate(ctx, m)
	}
	stop := context.AfterFunc(ctx, func() { fw.RejectWaitingPod(h.pod.UID) })
	defer stop()
	status := fw.WaitOnPermit(ctx, h.pod)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !status.IsRejected():
		return failedWith(status)
	}
	fit := &framework.FitError{NumAllNodes: 1, Pod: h.pod, Diagnosis: framework.Diagnosis{
		NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(status.Plugin()),
	}}
	fit.Diagnosis.NodeToStatus.Set(h.node, status)

	return failedWith(fwk.NewStatus(status.Code()).WithError(fit))
}

// nominate tells autoscalers that the pod has a node, because it will take a
// while until the pod is bound.
func (b *binding) nominate(ctx context.Context, m int) {
	h := b.held[m]
	if h.pod.Status.NominatedNodeName == h.node || !utilfeature.DefaultFeatureGate.Enabled(features.NominatedNodeNameForExpectation) {
		return
	}
	status := h.pod.Status.DeepCopy()
	status.NominatedNodeName = h.node
	if err := patchPodStatus(ctx, b.t.fw.ClientSet(), h.pod, &h.pod.Status, status); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to write the nominated node name of a pod that is about to be bound", "pod", klog.KObj(h.pod), "node", h.node)
	}
	// Even if the answer was lost.
	b.nominated[m] = true
	b.binder.groups.wroteNomination(h.pod.UID, h.node)
}

// prepare runs the PreBind plugins.
func (b *binding) prepare(ctx context.Context, m int) error {
	h := b.held[m]
	// From here on the pod is not rejected any more, and the queue may drop the
	// events that it kept for it.
	b.binder.kube.SchedulingQueue.Done(h.pod.UID)

	return failedWith(b.t.fw.RunPreBindPlugins(ctx, h.state, h.pod, h.node))
}

func (b *binding) mark(m int) error {
	if p := b.t.fw.GetPodInPreBind(b.held[m].pod.UID); p != nil && !p.MarkPrebound() {
		return context.Cause(b.round.members[m].ctx)
	}

	return nil
}

func (b *binding) bind(ctx context.Context, m int) error {
	h := b.held[m]
	if err := b.request(ctx, h); err != nil {
		return err
	}
	b.afterBind(ctx, h)

	return nil
}

// afterBind is what follows a successful request. A panic there must not undo the binding.
func (b *binding) afterBind(ctx context.Context, h holding) {
	defer recovered(workerBinding, b.t.key)
	b.t.fw.RemovePodInPreBind(h.pod.UID)
	b.bound(ctx, h)
	b.t.fw.RunPostBindPlugins(ctx, h.state, h.pod, h.node)
	b.binder.activate(ctx, h)
}

// request asks an extender or the API server to bind the pod.
func (b *binding) request(ctx context.Context, h holding) error {
	if err := b.binder.slots.acquire(ctx, h.pod.Namespace); err != nil {
		return err
	}
	defer b.binder.slots.release(h.pod.Namespace)
	if done, err := b.binder.extend(ctx, h); done {
		return err
	}
	err := failedWith(b.t.fw.RunBindPlugins(ctx, h.state, h.pod, h.node))
	if apierrors.IsConflict(err) && b.isBound(ctx, h) {
		return nil
	}

	return err
}

// isBound reports whether an earlier request succeeded whose answer was lost.
func (b *binding) isBound(ctx context.Context, h holding) bool {
	pod, err := b.t.fw.ClientSet().CoreV1().Pods(h.pod.Namespace).Get(ctx, h.pod.Name, metav1.GetOptions{})

	return err == nil && pod.UID == h.pod.UID && pod.Spec.NodeName == h.node
}

// extend binds through an extender, if one is configured for the pod.
func (s *binder) extend(ctx context.Context, h holding) (bool, error) {
	for _, e := range s.kube.Extenders {
		if !e.IsBinder() || !e.IsInterested(h.pod) {
			continue
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: h.node}}
		binding.Namespace, binding.Name, binding.UID = h.pod.Namespace, h.pod.Name, h.pod.UID
		err := e.Bind(binding)
		if err != nil && e.IsIgnorable() {
			klog.FromContext(ctx).Info("An extender could not bind and may be ignored", "extender", e.Name(), "err", err)

			continue
		}

		return true, err
	}

	return false, nil
}

// bound counts and records what kube-scheduler does for a pod that is bound.
func (b *binding) bound(ctx context.Context, h holding) {
	fw, q := b.t.fw, b.t.waiting[h.member]
	fw.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(h.pod, nil, corev1.EventTypeNormal, "Scheduled", "Binding",
		"Successfully assigned %v/%v to %v", h.pod.Namespace, h.pod.Name, h.node)
	metrics.PodScheduled(fw.ProfileName(), metrics.SinceInSeconds(b.t.began))
	metrics.PodSchedulingAttempts.Observe(float64(q.Attempts))
	if q.InitialAttemptTimestamp != nil {
		metrics.PodSchedulingSLIDuration.WithLabelValues(attempts(q.Attempts)).Observe(metrics.SinceInSeconds(*q.InitialAttemptTimestamp))
	}
	if q.WasFlushedFromUnschedulable {
		metrics.PodScheduledAfterFlush.Inc()
	}
}

// attempts is kube-scheduler's label for a number of attempts.
func attempts(n int) string {
	const most = 15
	if n >= most {
		return strconv.Itoa(most) + "+"
	}

	return strconv.Itoa(n)
}

// A statusError is a status of the framework as an error.
type statusError struct{ status *fwk.Status }

func failedWith(status *fwk.Status) error {
	if status.IsSuccess() {
		return nil
	}

	return &statusError{status}
}

func (e *statusError) Error() string { return e.status.Message() }

func (e *statusError) Unwrap() error { return e.status.AsError() }

// statusOf returns the framework's status of an error.
func statusOf(err error) *fwk.Status {
	var known *statusError
	if errors.As(err, &known) && known.status.IsRejected() {
		return known.status
	}

	return fwk.AsStatus(err)
}

// settle ends or extends the gang's back-off.
func (b *binding) settle(bound bool) {
	if bound {
		b.binder.backOffs.forget(b.t.key)
		b.binder.unprepared.forget(b.t.key)
	} else {
		b.binder.backOffs.failedSince(b.t.key, b.t.began)
	}
	b.binder.rounds.settled(b.t.key)
	b.binder.preemptor.touch(b.t.key)
	b.binder.reporter.touch(b.t.key)
}
