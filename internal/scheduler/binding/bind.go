package binding

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
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// bindsAtOnce is how many requests to bind are under way at a time. The API
// server takes 100 requests per connection, and each request that finds no room
// in one opens another. With 100 requests at a time 1,000 bindings open about 20
// connections and take half as long as with 50; with 200 they open 140 and take
// longer.
const bindsAtOnce = 100

// A binding is a round of one gang with kube-scheduler's framework.
type binding struct {
	binder *Binder
	t      *Gang
	ctx    context.Context //nolint:containedctx // it outlives the cycle
	held   []placement.Holding
	round  *round
	// nominated members have a nominatedNodeName that was written here.
	nominated []bool
}

var _ roundSteps = &binding{}

// A Binder binds gangs that have their places.
type Binder struct {
	Deps

	// rounds are the gangs that are being bound.
	rounds *Rounds
	// slots has one for each request to bind that may be under way.
	slots *slots
}

// Deps is what a binder needs.
type Deps struct {
	Kube       *kubescheduler.Scheduler
	Groups     *podgroups.Index
	BackOffs   *backoff.BackOffs
	Unprepared *backoff.Unprepared
	// Timeout is how long it may take until the minimum of a gang is ready to be bound.
	Timeout time.Duration
	// Preemptor and Reporter follow what happens to a gang.
	Preemptor bindingPreemptor
	Reporter  bindingReporter
	// Reserved reports whether room is reserved for a gang.
	Reserved func(types.NamespacedName) bool
	// PutBack returns a pod to the queue, and Activate moves the pods that plugins asked for
	// in the cycle of another one.
	PutBack  func(ctx context.Context, q *framework.QueuedPodInfo, rejectors sets.Set[string])
	Activate func(context.Context, placement.Holding)
}

// bindingPreemptor is told about the places of a gang.
type bindingPreemptor interface {
	Touch(key types.NamespacedName)
	Gone(pod types.UID)
	CleanUpLater(key types.NamespacedName)
}

// bindingReporter is told about the state of a gang.
type bindingReporter interface {
	Touch(key types.NamespacedName)
	Decided(key types.NamespacedName, outcome *decide.Outcome)
}

// A Gang is a gang that was tried and fits.
type Gang struct {
	Key       types.NamespacedName
	Gang      *decide.Gang
	Waiting   []*framework.QueuedPodInfo // by member; nil for those that did not wait
	Framework framework.Framework
	Began     time.Time
}

// NewBinder returns a binder that adds its rounds to rounds.
func NewBinder(deps Deps, rounds *Rounds) *Binder {
	return &Binder{Deps: deps, rounds: rounds, slots: newSlots(bindsAtOnce)}
}

// BindAll binds the members that have a place, of which the first ones are
// required, in the background.
func (s *Binder) BindAll(ctx context.Context, t *Gang, held []placement.Holding, required int) {
	if len(held) == 0 {
		return
	}
	b := &binding{binder: s, t: t, ctx: ctx, held: held, nominated: make([]bool, len(held))}
	b.round = newRound(ctx, safeSteps{b, t.Key}, len(held), required, chains(held), s.Timeout, func() { s.Reporter.Touch(t.Key) })
	for m, h := range held {
		// A member that waits for the others can be preempted without deleting it.
		t.Framework.AddPodInPreBind(h.Pod.UID, b.round.members[m].cancel)
	}
	s.rounds.add(t.Key, b)
	go func() { //nolint:contextcheck // the round has a context of its own, which outlives the cycle
		count := metrics.Goroutines.WithLabelValues(metrics.Binding)
		count.Add(float64(len(held)))
		defer count.Add(-float64(len(held)))
		defer s.Reporter.Touch(t.Key)
		defer s.rounds.remove(t.Key, b)
		defer worker.Recovered(worker.Binding, t.Key)
		b.round.run()
	}()
}

// permit waits for the Permit plugins that delay the pod.
func (b *binding) permit(ctx context.Context, m int) error {
	fw, h := b.t.Framework, b.held[m]
	flight := fw.RunPreBindPreFlights(ctx, h.State, h.Pod, h.Node)
	if flight.Code() == fwk.Error || flight.IsRejected() {
		return failedWith(flight)
	}
	if flight.IsSuccess() || fw.WillWaitOnPermit(ctx, h.Pod) {
		b.nominate(ctx, m)
	}
	stop := context.AfterFunc(ctx, func() { fw.RejectWaitingPod(h.Pod.UID) })
	defer stop()
	status := fw.WaitOnPermit(ctx, h.Pod)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !status.IsRejected():
		return failedWith(status)
	}
	fit := &framework.FitError{NumAllNodes: 1, Pod: h.Pod, Diagnosis: framework.Diagnosis{
		NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(status.Plugin()),
	}}
	fit.Diagnosis.NodeToStatus.Set(h.Node, status)

	return failedWith(fwk.NewStatus(status.Code()).WithError(fit))
}

// nominate tells autoscalers that the pod has a node, because it will take a
// while until the pod is bound.
func (b *binding) nominate(ctx context.Context, m int) {
	h := b.held[m]
	if h.Pod.Status.NominatedNodeName == h.Node || !utilfeature.DefaultFeatureGate.Enabled(features.NominatedNodeNameForExpectation) {
		return
	}
	status := h.Pod.Status.DeepCopy()
	status.NominatedNodeName = h.Node
	if err := podgroups.PatchPodStatus(ctx, b.t.Framework.ClientSet(), h.Pod, &h.Pod.Status, status); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to write the nominated node name of a pod that is about to be bound", "pod", klog.KObj(h.Pod), "node", h.Node)
	}
	// Even if the answer was lost.
	b.nominated[m] = true
	b.binder.Groups.WroteNomination(h.Pod.UID, h.Node)
}

// prepare runs the PreBind plugins.
func (b *binding) prepare(ctx context.Context, m int) error {
	h := b.held[m]
	// From here on the pod is not rejected any more, and the queue may drop the
	// events that it kept for it.
	b.binder.Kube.SchedulingQueue.Done(h.Pod.UID)

	return failedWith(b.t.Framework.RunPreBindPlugins(ctx, h.State, h.Pod, h.Node))
}

func (b *binding) mark(m int) error {
	if p := b.t.Framework.GetPodInPreBind(b.held[m].Pod.UID); p != nil && !p.MarkPrebound() {
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
func (b *binding) afterBind(ctx context.Context, h placement.Holding) {
	defer worker.Recovered(worker.Binding, b.t.Key)
	b.t.Framework.RemovePodInPreBind(h.Pod.UID)
	b.bound(ctx, h)
	b.t.Framework.RunPostBindPlugins(ctx, h.State, h.Pod, h.Node)
	b.binder.Activate(ctx, h)
}

// request asks an extender or the API server to bind the pod.
func (b *binding) request(ctx context.Context, h placement.Holding) error {
	if err := b.binder.slots.acquire(ctx, h.Pod.Namespace); err != nil {
		return err
	}
	defer b.binder.slots.release(h.Pod.Namespace)
	if done, err := b.binder.extend(ctx, h); done {
		return err
	}
	err := failedWith(b.t.Framework.RunBindPlugins(ctx, h.State, h.Pod, h.Node))
	if apierrors.IsConflict(err) && b.isBound(ctx, h) {
		return nil
	}

	return err
}

// isBound reports whether an earlier request succeeded whose answer was lost.
func (b *binding) isBound(ctx context.Context, h placement.Holding) bool {
	pod, err := b.t.Framework.ClientSet().CoreV1().Pods(h.Pod.Namespace).Get(ctx, h.Pod.Name, metav1.GetOptions{})

	return err == nil && pod.UID == h.Pod.UID && pod.Spec.NodeName == h.Node
}

// extend binds through an extender, if one is configured for the pod.
func (s *Binder) extend(ctx context.Context, h placement.Holding) (bool, error) {
	for _, e := range s.Kube.Extenders {
		if !e.IsBinder() || !e.IsInterested(h.Pod) {
			continue
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: h.Node}}
		binding.Namespace, binding.Name, binding.UID = h.Pod.Namespace, h.Pod.Name, h.Pod.UID
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
func (b *binding) bound(ctx context.Context, h placement.Holding) {
	fw, q := b.t.Framework, b.t.Waiting[h.Member]
	fw.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(h.Pod, nil, corev1.EventTypeNormal, "Scheduled", "Binding",
		"Successfully assigned %v/%v to %v", h.Pod.Namespace, h.Pod.Name, h.Node)
	metrics.PodScheduled(fw.ProfileName(), metrics.SinceInSeconds(b.t.Began))
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
		b.binder.BackOffs.Forget(b.t.Key)
		b.binder.Unprepared.Forget(b.t.Key)
	} else {
		b.binder.BackOffs.FailedSince(b.t.Key, b.t.Began)
	}
	b.binder.rounds.settled(b.t.Key)
	b.binder.Preemptor.Touch(b.t.Key)
	b.binder.Reporter.Touch(b.t.Key)
}
