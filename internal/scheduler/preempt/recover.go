package preempt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/victims"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/reservation"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
	"github.com/arbor-control/arbor/internal/scheduler/worker"
)

// This file continues with the reservations that another process has recorded. Users can
// edit the record, which is an annotation, so it proves nothing: it only says where to look.
// What is recovered is what this process could have decided itself: the places that the
// minimum of the gang needs, at nodes that pass the filters, and of the recorded victims
// those that may be evicted and that these places need.

// RecoverReservations continues with what another process has recorded, before the
// first pod is placed. Records that cannot be used are removed; the nominations of the
// pods then count as kube-scheduler's do.
func (p *Preemptor) RecoverReservations(ctx context.Context) {
	logger := klog.FromContext(ctx)
	var pods map[types.UID]*corev1.Pod
	for _, key := range p.Groups.Keys() {
		pg := p.Groups.Group(key)
		if pg == nil {
			continue
		}
		r, err := podgroups.RecordOf(pg)
		if r == nil && err == nil || !slices.ContainsFunc(p.Groups.Members(key), p.Answers) {
			continue
		}
		if p.isPlaced(key) { // the process ended before it removed the record
			p.cleanups.Add(key)

			continue
		}
		if pods == nil {
			pods = p.Groups.ByUID()
		}
		if err == nil {
			err = p.recoverReservation(ctx, key, r, pods)
		}
		if err != nil {
			logger.Info("A reservation could not be recovered and is released", "podGroup", key, "err", err)
			p.Reporter.Dropped(pg, err)
			p.cleanups.Add(key)
		}
	}
}

// isPlaced reports whether every minimum of a gang is met by bound pods: it needs no
// reservation any more.
func (p *Preemptor) isPlaced(key types.NamespacedName) bool {
	defer worker.Recovered(worker.Recovery, key)
	g, why := p.Groups.Read(key)

	return why == nil && g.Placed()
}

func (p *Preemptor) recoverReservation(ctx context.Context, key types.NamespacedName, r *podgroups.ReservationRecord, pods map[types.UID]*corev1.Pod) (err error) {
	defer func() {
		if worker.Caught(worker.Recovery, key, recover()) {
			err = errors.New("it could not be read")
		}
	}()
	g, why := p.Groups.Read(key)
	if why != nil {
		return errors.New(why.Message)
	}
	if err := p.checkRecord(g, r, time.Now()); err != nil {
		return err
	}
	of, err := p.recordedPlaces(g)
	if err != nil {
		return err
	}
	if of.victims, err = p.recordedVictims(ctx, key, g, of, p.evictable(r, of.priority, pods)); err != nil {
		return err
	}
	if p.tooMany(of) {
		return fmt.Errorf("%d pods would have to be evicted, more than --max-eviction-ratio allows", of.evictions())
	}
	if err := p.claim(of); err != nil {
		return err
	}
	if r.Deadline.Before(of.deadline) {
		of.deadline = r.Deadline
	}
	p.Reservations.Set(reservation.NewReservation(key, of.pods, of.nodes, of.priority))
	p.resume(key, of)
	klog.FromContext(ctx).Info("Recovered the reservation of a gang", "podGroup", key, "pods", len(of.pods), "victims", len(of.victims))

	return nil
}

// checkRecord returns why this scheduler cannot have written a record for the gang as it
// is now. How long the room stays reserved is decided again, see claimed, so a deadline
// that is too late does no harm.
func (p *Preemptor) checkRecord(g *decide.Gang, r *podgroups.ReservationRecord, now time.Time) error {
	switch {
	case r.Reason != podgroups.RecordReason:
		return fmt.Errorf("its reason is %q", r.Reason)
	case r.Generation != g.Group.Generation:
		return fmt.Errorf("it was made for generation %d, and the group has %d", r.Generation, g.Group.Generation)
	case !now.Before(r.Deadline):
		return fmt.Errorf("its deadline was %s", r.Deadline)
	case !p.mayPreempt(g):
		return errors.New("the group may not preempt")
	case preemptionDelay(g, now) > 0:
		return errors.New("the group may not preempt yet")
	default:
		return nil
	}
}

// recordedPlaces returns a plan without victims. The places are the nominations of the
// pods: so many of them as the minimum of the gang needs.
func (p *Preemptor) recordedPlaces(g *decide.Gang) (*plan, error) {
	of := &plan{group: g.Group.UID, generation: g.Group.Generation, priority: p.Groups.Priority(g.Group, g.Pods), recovered: true}
	var nominated []int
	for i, m := range g.Members {
		if waits(m) && g.Pods[i].Status.NominatedNodeName != "" {
			nominated = append(nominated, i)
		}
	}
	for _, i := range gang.Enough(g.Tree, g.Members, g.Rules, nominated) {
		of.pods, of.nodes = append(of.pods, g.Pods[i]), append(of.nodes, g.Pods[i].Status.NominatedNodeName)
	}
	if len(of.pods) == 0 {
		return nil, errors.New("not all of its pods are nominated")
	}

	return of, nil
}

// evictable returns the recorded pods that exist and may be evicted for a priority.
func (p *Preemptor) evictable(r *podgroups.ReservationRecord, priority int32, pods map[types.UID]*corev1.Pod) []*corev1.Pod {
	var all []*corev1.Pod
	for _, uid := range slices.Compact(slices.Sorted(slices.Values(r.Victims))) {
		if pod := pods[uid]; pod != nil && p.mayEvict(pod, priority, nil) {
			all = append(all, pod)
		}
	}

	return all
}

// recordedVictims returns those of the recorded pods that the places of a plan need, what
// is left of gangs whose eviction had begun, and the pods that are terminating on the
// nodes of the places. It is an error if the places do not pass the filters without them.
// Only the scheduling goroutine may call it.
func (p *Preemptor) recordedVictims(ctx context.Context, key types.NamespacedName, g *decide.Gang, of *plan, recorded []*corev1.Pod) ([]*corev1.Pod, error) {
	done := p.Reservations.Try(key)
	defer done()
	dry, err := p.liveDryRun(ctx, key, g, of)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	dry.removeTerminating(now)
	dry.removeDeleted(of.nodes, p.Groups.Current, now)
	places, err := dry.placesOf(g, of)
	if err != nil {
		return nil, err
	}
	q, err := p.emptyProblem(key, g, dry)
	if err != nil {
		return nil, err
	}
	q.addRecorded(recorded, of.priority)
	result, err := victims.Spare(ctx, &q.Problem, dry, places)
	switch {
	case err != nil:
		return nil, err
	case result.Outcome != victims.Found && result.Outcome != victims.Fits:
		return nil, errors.New(result.Reason)
	}
	all := dry.terminatingOn(of.nodes, now)
	for _, pod := range recorded { // the cache may be late
		if terminating(pod, now) && slices.Contains(of.nodes, pod.Spec.NodeName) {
			all = append(all, pod)
		}
	}
	for _, i := range result.Victims {
		all = append(all, q.pods[i])
	}

	return distinct(append(all, p.unfinished(key, recorded)...)), nil
}

// distinct returns pods without repeating one.
func distinct(pods []*corev1.Pod) []*corev1.Pod {
	seen := sets.New[types.UID]()

	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		had := seen.Has(pod.UID)
		seen.Insert(pod.UID)

		return had
	})
}

// addRecorded makes recorded pods that run the candidates. That they may be evicted is
// known.
func (q *problem) addRecorded(recorded []*corev1.Pod, below int32) {
	wanted := sets.New[types.UID]()
	for _, pod := range recorded {
		if isRunning(pod) {
			wanted.Insert(pod.UID)
		}
	}
	for i := range q.dry.nodes {
		for _, info := range q.dry.node(i).GetPods() {
			if wanted.Has(info.GetPod().UID) {
				q.addAnyway(info, i, below)
			}
		}
	}
}

// addAnyway makes a pod a candidate, whatever its priority and that of its gang.
func (q *problem) addAnyway(info fwk.PodInfo, node int, below int32) {
	pod := info.GetPod()
	c := victims.Pod{Name: pod.Namespace + "/" + pod.Name, Node: node, Gang: -1, Priority: corev1helpers.PodPriority(pod)}
	of, ok := decide.GroupOf(pod)
	if !ok {
		q.add(c, info)

		return
	}
	if g := q.gangOf(of, below); g != nil {
		member, known := g.members[pod.UID]
		if !known {
			return
		}
		c.Gang, c.Member, c.Priority = g.index, member, g.priority
	}
	q.add(c, info)
}

// unfinished returns the recorded pods that are left of gangs, or of their subgroups, which
// the other process had begun to evict for this gang, and that are of no use any more
// without the others. The condition of the evicted pods is the proof, which only those can
// write who may write the status of pods.
func (p *Preemptor) unfinished(key types.NamespacedName, recorded []*corev1.Pod) []*corev1.Pod {
	stale := sets.New[types.UID]()
	for _, pod := range recorded {
		of, ok := decide.GroupOf(pod)
		if !ok || isRunning(pod) || !evictedFor(pod, key) {
			continue
		}
		g := p.Groups.Running(of)
		if g == nil {
			continue
		}
		for _, i := range gang.Stale(g.Tree, g.Members, g.Rules) {
			stale.Insert(g.Pods[i].UID)
		}
	}

	return slices.DeleteFunc(slices.Clone(recorded), func(pod *corev1.Pod) bool { return !isRunning(pod) || !stale.Has(pod.UID) })
}

// preemptedBy begins the message of pods that are evicted for a gang.
func preemptedBy(key types.NamespacedName) string {
	return fmt.Sprintf("preempted by PodGroup %s of priority ", key)
}

// evictedFor reports whether a pod was evicted by this scheduler for a gang.
func evictedFor(pod *corev1.Pod, key types.NamespacedName) bool {
	_, c := podutil.GetPodCondition(&pod.Status, corev1.DisruptionTarget)

	return c != nil && c.Reason == corev1.PodReasonPreemptionByScheduler && strings.HasPrefix(c.Message, settings.Name+": "+preemptedBy(key))
}
