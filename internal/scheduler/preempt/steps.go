package preempt

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/victims"
	"github.com/arbor-control/arbor/internal/decide/preemption"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/gangmetrics"
	"github.com/arbor-control/arbor/internal/scheduler/report"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
)

// act carries out an action. It returns false if that is to be retried later.
func (p *Preemptor) act(ctx context.Context, key types.NamespacedName, g *decide.Gang, one *preempting, action preemption.Action, f preemption.Facts) bool {
	switch action {
	case preemption.Search:
		p.look(ctx, key, g, one)

		return true
	case preemption.Release:
		p.release(ctx, key, one, f)

		return true
	case preemption.Wait, preemption.Record, preemption.Nominate, preemption.Evict, preemption.Renew, preemption.RecordAgain:
	}
	err := p.write(ctx, key, g, one, action)
	switch {
	case err == nil:
		p.set(one, one.state.Did(action, time.Now()))

		return true
	case errors.Is(err, errOutdated):
		klog.FromContext(ctx).V(1).Info("A reservation is released because the group has changed", "podGroup", key, "err", err)
		f.Applies = false
		p.release(ctx, key, one, f)

		return true
	}
	klog.FromContext(ctx).Error(err, "A step of a preemption failed", "podGroup", key)
	state, final := one.state.Failed(time.Now())
	p.set(one, state)
	p.Reporter.Note(key, one.plan.group, one.plan.generation, &report.Progress{Reason: v2alpha2.ReasonPreemptionBlocked, Message: err.Error()})
	if final || errors.Is(err, errIneligible) {
		f.Using, f.Stuck = nil, nil // the error is what is in the way
		p.release(ctx, key, one, f)

		return true
	}

	return false
}

// write carries out an action that writes to the API server, or prepares that.
func (p *Preemptor) write(ctx context.Context, key types.NamespacedName, g *decide.Gang, one *preempting, action preemption.Action) error {
	switch action {
	case preemption.Record:
		return p.record(ctx, g.Group, one.plan)
	case preemption.Nominate:
		return p.nominate(ctx, one.plan)
	case preemption.Evict:
		return p.evict(ctx, key, one.plan)
	case preemption.Renew:
		return p.renew(ctx, key, g, one)
	case preemption.RecordAgain:
		return p.recordAgain(ctx, g, one)
	case preemption.Wait, preemption.Search, preemption.Release:
	}

	return nil
}

// look searches for victims, within the budget, unless the gang may not preempt.
func (p *Preemptor) look(ctx context.Context, key types.NamespacedName, g *decide.Gang, one *preempting) {
	p.setUnplaced(one, false)
	if !p.mayPreempt(g) {
		p.Reporter.Note(key, g.Group.UID, g.Group.Generation, nil)

		return
	}
	if left := preemptionDelay(g, time.Now()); left > 0 {
		p.setUnplaced(one, true)
		p.set(one, one.state.Delay(time.Now().Add(left)))
		p.Reporter.Note(key, g.Group.UID, g.Group.Generation, nil)

		return
	}
	s := p.search(ctx, key, g, one.state.Budget())
	gangmetrics.TrialSeconds.WithLabelValues("preemption").Observe(s.took.Seconds())
	p.conclude(ctx, key, g, one, s)
}

// setUnplaced stores whether the gang was tried since the last search that gave an answer.
func (p *Preemptor) setUnplaced(one *preempting, to bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.unplaced = to
}

// searched is how a search ended.
type searched struct {
	found  *plan
	result victims.Result
	took   time.Duration
	err    error
	// exceeded reports that the budget was used up.
	exceeded bool
	// candidates is how many pods may be evicted.
	candidates int
	// blockers are pods that do not terminate. Without them, there would be a plan.
	blockers []string
}

// hopeless returns what to report if preemption cannot help as things are, nil if it can,
// or if there is nothing more to say than that the gang does not fit.
func (s *searched) hopeless() *report.Progress {
	switch {
	case len(s.blockers) > 0:
		return &report.Progress{Reason: v2alpha2.ReasonPreemptionBlocked, Message: preemption.InTheWay(s.blockers)}
	case s.result.Outcome == victims.Insufficient && s.candidates > 0:
		return &report.Progress{Reason: v2alpha2.ReasonUnschedulable, Message: "preemption cannot help: " + s.result.Reason}
	default:
		return nil
	}
}

// conclude decides what follows from a search. One that gave no answer is repeated after a
// back-off, whether or not the gang is tried again before.
func (p *Preemptor) conclude(ctx context.Context, key types.NamespacedName, g *decide.Gang, one *preempting, s searched) {
	state, reported := p.unanswered(ctx, key, one.state, s)
	if reported != nil {
		p.Reporter.Note(key, g.Group.UID, g.Group.Generation, reported)
		p.setUnplaced(one, true)
		p.set(one, state)

		return
	}
	p.Reporter.Note(key, g.Group.UID, g.Group.Generation, s.hopeless())
	switch {
	case s.found != nil:
		p.mu.Lock()
		one.plan, one.state = s.found, one.state.Found(time.Now())
		p.mu.Unlock()
		p.retry(key)
	case s.result.Outcome == victims.Fits:
		// Pods have terminated since it was tried, or are about to. These wake it. The pause
		// bounds how often it is tried because of this.
		p.set(one, one.state.Pause(time.Now(), max(s.took, leastSearch)))
		p.BackOffs.Forgive(key)
		p.Wake(key)
	default: // not even if all of them were evicted
		p.set(one, one.state.Pause(time.Now(), s.took))
	}
}

// unanswered returns the state after a search that gave no answer, and what to report. That
// is nil if it gave one.
func (p *Preemptor) unanswered(ctx context.Context, key types.NamespacedName, state preemption.State, s searched) (preemption.State, *report.Progress) {
	switch {
	case s.exceeded:
		return state.Exceeded(time.Now()), &report.Progress{
			Reason:  v2alpha2.ReasonPreemptionSearchTooLong,
			Message: fmt.Sprintf("the search for pods to preempt took longer than %s; no pod was evicted", state.Budget()),
		}
	case s.err != nil:
		klog.FromContext(ctx).Error(s.err, "A search for victims failed", "podGroup", key)

		return state.BackOff(time.Now()), &report.Progress{Reason: v2alpha2.ReasonPreemptionBlocked, Message: "the search for pods to preempt failed: " + s.err.Error()}
	case s.found != nil && p.tooMany(s.found):
		return state.BackOff(time.Now()), &report.Progress{Reason: v2alpha2.ReasonPreemptionBlocked, Message: fmt.Sprintf(
			"%d pods would have to be evicted to place %d, more than --max-eviction-ratio=%g allows", s.found.evictions(), len(s.found.pods), p.Options.MaxEvictionRatio)}
	case s.found == nil && s.result.Outcome == victims.Unproven:
		return state.BackOff(time.Now()), &report.Progress{
			Reason:  v2alpha2.ReasonPreemptionUnproven,
			Message: "pods could be preempted, but it is not certain that the group fits then: " + s.result.Reason,
		}
	default:
		return state, nil
	}
}

func (p *Preemptor) tooMany(found *plan) bool {
	limit := p.Options.MaxEvictionRatio

	return limit > 0 && float64(found.evictions()) > limit*float64(len(found.pods))
}

// preemptionDelay is how long a gang still has to wait before it may preempt.
func preemptionDelay(g *decide.Gang, now time.Time) time.Duration {
	if d, ok := g.Group.Spec.PreemptionDelay.Get(); ok {
		return g.Group.CreationTimestamp.Add(d).Sub(now)
	}

	return 0
}

// errIneligible ends a preemption whose victims have changed.
var errIneligible = errors.New("a pod that was to be preempted may not be evicted any more")

// evict deletes the victims that are not being deleted yet.
func (p *Preemptor) evict(ctx context.Context, key types.NamespacedName, of *plan) error {
	var pods []*corev1.Pod
	p.mu.Lock()
	for _, pod := range of.victims {
		p.await(pod.UID, key)
		if is := p.Groups.UsingRoom(pod); is != nil && is.DeletionTimestamp == nil && !p.Groups.WasDeleted(pod.UID) {
			pods = append(pods, is)
		}
	}
	p.mu.Unlock()
	for _, pod := range pods {
		if !p.mayEvict(pod, of.priority, of.victims) {
			return fmt.Errorf("%w: %s/%s", errIneligible, pod.Namespace, pod.Name)
		}
	}
	evicted, err := p.Evictor.EvictAll(ctx, pods, corev1.PodReasonPreemptionByScheduler, "preempted", preemptedBy(key)+strconv.Itoa(int(of.priority)))
	of.evicted = sets.New(evicted...).Union(of.evicted)
	if err == nil {
		p.announce(key, of)
	}

	return err
}

// announce reports once how many pods were evicted for a plan, in all attempts.
func (p *Preemptor) announce(key types.NamespacedName, of *plan) {
	if !of.announced && len(of.evicted) > 0 {
		of.announced = true
		p.Reporter.Preempted(key, len(of.evicted), len(of.pods))
	}
}

// release ends a plan and its reservation. Pods that may use the room are tried again.
func (p *Preemptor) release(ctx context.Context, key types.NamespacedName, one *preempting, f preemption.Facts) {
	p.mu.Lock()
	of := one.plan
	// A gang that is not placed is searched for again when the back-off is over, even if
	// nothing has it tried until then.
	one.plan, one.verified, one.unplaced = nil, nil, !f.Placed
	if of != nil {
		for _, pod := range of.victims {
			p.unawait(pod.UID, key)
		}
	}
	p.mu.Unlock()
	state, cause := one.state.Released(f)
	p.set(one, state)
	if of == nil {
		return
	}
	if f.Applies {
		p.announce(key, of) // some victims were evicted, even if not all could be
	}
	p.unclaim(of)
	p.vacate(ctx, p.Reservations.Release(key))
	if cause != preemption.Outdated {
		p.cleanups.Add(key)
	}
	blockers := f.Stuck
	if len(blockers) == 0 {
		blockers = f.Using
	}
	p.released(key, of, cause, blockers)
}

// unclaim has victims count again that are not evicted after all.
func (p *Preemptor) unclaim(of *plan) {
	p.mu.Lock()
	claimed := of.claimed
	p.mu.Unlock()
	if !claimed {
		return
	}
	for _, pod := range of.victims {
		switch is := p.Groups.Current(pod); {
		case is == nil:
			p.Groups.ForgetLeaving(pod.UID) // no event of it is to come
		case is.DeletionTimestamp == nil:
			p.Groups.Unmark(is)
		}
	}
}

// released reports how a reservation ended. blockers are the victims in the way.
func (p *Preemptor) released(key types.NamespacedName, of *plan, cause preemption.Cause, blockers []string) {
	note := func(reason, message string) {
		p.Reporter.Note(key, of.group, of.generation, &report.Progress{Reason: reason, Message: message})
	}
	switch cause {
	case preemption.Expired:
		gangmetrics.ReservationsEnded.WithLabelValues("expired").Inc()
		note(v2alpha2.ReasonReservationExpired,
			fmt.Sprintf("the group was not placed within %s after its %d victims were gone; it backs off", preemption.RoomTimeout, len(of.victims)))
	case preemption.Unprepared:
		gangmetrics.ReservationsEnded.WithLabelValues("unprepared").Inc()
		p.Reporter.Note(key, of.group, of.generation, nil) // why is in the answer to the binding round
	case preemption.Blocked:
		gangmetrics.ReservationsEnded.WithLabelValues("blocked").Inc()
		if len(blockers) > 0 {
			note(v2alpha2.ReasonPreemptionBlocked, preemption.InTheWay(blockers)+"; the group gives up its reserved room and backs off")
		}
	case preemption.Superseded:
		gangmetrics.ReservationsEnded.WithLabelValues("superseded").Inc()
		p.Reporter.Note(key, of.group, of.generation, nil)
	case preemption.Done:
		gangmetrics.ReservationsEnded.WithLabelValues("placed").Inc()
		p.Reporter.Note(key, of.group, of.generation, nil)
	case preemption.Outdated:
		p.Reporter.Note(key, of.group, of.generation, nil)
	}
}

// report shows that the gang waits for victims.
func (p *Preemptor) report(key types.NamespacedName, g *decide.Gang, one *preempting, victims int) {
	if g != nil && one.plan == nil {
		p.reportUnprepared(key, g, one)
	}
	if g == nil || one.plan == nil || one.state.Phase != preemption.Evicted {
		return
	}
	p.Reporter.Note(key, g.Group.UID, g.Group.Generation, &report.Progress{
		Reason:  v2alpha2.ReasonPreempting,
		Message: fmt.Sprintf("room is reserved%s; %d of %d pods in the way are still terminating", one.plan.uncovered(), victims, len(one.plan.victims)),
	})
}

// reportUnprepared shows that the gang does not preempt because a pod could not be prepared.
func (p *Preemptor) reportUnprepared(key types.NamespacedName, g *decide.Gang, one *preempting) {
	message := p.Unprepared.Message(key)
	if message == "" && !one.unprepared {
		return
	}
	one.unprepared = message != ""
	if message == "" {
		p.Reporter.Note(key, g.Group.UID, g.Group.Generation, nil)

		return
	}
	p.Reporter.Note(key, g.Group.UID, g.Group.Generation, &report.Progress{Reason: v2alpha2.ReasonPreemptionBlocked, Message: message})
}

// mayPreempt is the one place that decides who may preempt: gangs, unless that is
// switched off, or the PriorityClass of the group or a pod that waits says Never.
func (p *Preemptor) mayPreempt(g *decide.Gang) bool {
	if !p.Options.Preemption || p.Groups.Never(g.Group) {
		return false
	}
	for i, m := range g.Members {
		if policy := g.Pods[i].Spec.PreemptionPolicy; waits(m) && policy != nil && *policy == corev1.PreemptNever {
			return false
		}
	}

	return true
}

// vacate has pods tried again that may use released room: once for each kind of pod
// that the room was reserved for.
func (p *Preemptor) vacate(ctx context.Context, r *reservation.Reservation) {
	if r == nil {
		return
	}
	logger, seen := klog.FromContext(ctx), map[string]bool{}
	for _, place := range r.Places {
		pod := *place.Info.GetPod()
		shape := decide.Shape(&pod, false)
		if shape != "" && seen[shape] {
			continue
		}
		seen[shape] = true
		pod.Spec.NodeName = place.Node
		p.Kube.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, &pod, nil, nil)
	}
}
