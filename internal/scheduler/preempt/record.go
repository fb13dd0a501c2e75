package preempt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
)

// clearsPerSecond bounds how fast nominations are cleared: each makes the queue look at
// every pending pod.
const clearsPerSecond = 20

// record writes the record of a plan. It comes before the nominations and these before
// the evictions, so a process that ends in between leaves either no evictions or a
// record of them.
func (p *Preemptor) record(ctx context.Context, pg *v2alpha2.PodGroup, of *plan) error {
	if of.recovered && !of.unrecorded {
		return nil
	}
	r := podgroups.ReservationRecord{Generation: of.generation, Reason: podgroups.RecordReason, Deadline: of.deadline.UTC().Truncate(time.Second)}
	for _, pod := range of.victims {
		r.Victims = append(r.Victims, pod.UID)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}

	return p.Groups.Annotate(ctx, pg, v2alpha2.ReservationAnnotation, new(string(text)))
}

// cleanUp removes what is left of reservations and binding rounds that have ended: the
// record, and the nominations of pods that still wait. It is level-based: a group is added
// when one of them ends, and whenever a record without a reservation is seen. Records of
// groups that another scheduler places are its own.
func (p *Preemptor) cleanUp(ctx context.Context, key types.NamespacedName) error {
	pods := p.Groups.Members(key)
	if p.Reservations.Of(key) != nil || !slices.ContainsFunc(pods, p.Answers) {
		return nil
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || !p.Groups.MayBeNominated(pod) || p.Groups.IsCommitted(pod.UID) {
			continue
		}
		if err := p.clears.Wait(ctx); err != nil {
			return err
		}
		if p.Reservations.Of(key) != nil { // a new one, with nominations of its own
			return nil
		}
		if p.Groups.IsCommitted(pod.UID) {
			continue // it is being bound again
		}
		if err := p.Groups.SetNominatedNode(ctx, pod, ""); err != nil {
			return err
		}
	}

	return p.removeRecord(ctx, key)
}

// removeRecord removes the record of a reservation, if the group has one.
func (p *Preemptor) removeRecord(ctx context.Context, key types.NamespacedName) error {
	pg := p.Groups.Group(key)
	if pg == nil {
		return nil
	}
	if _, ok := pg.Annotations[v2alpha2.ReservationAnnotation]; !ok {
		return nil
	}

	return p.Groups.Annotate(ctx, pg, v2alpha2.ReservationAnnotation, nil)
}

// mayEvict reports whether a pod may be evicted for a priority, together with others. Its
// gang is judged as it was before the first of them was evicted: those no longer count as
// members, and what is left may have another priority. Users can edit the record of a
// PodGroup, so it is not trusted.
func (p *Preemptor) mayEvict(pod *corev1.Pod, below int32, together []*corev1.Pod) bool {
	key, ok := decide.GroupOf(pod)
	pg := p.Groups.Group(key)
	if !ok || pg == nil {
		return corev1helpers.PodPriority(pod) < below
	}
	pods := p.Groups.Members(key)
	for _, other := range append([]*corev1.Pod{pod}, together...) {
		if of, ok := decide.GroupOf(other); ok && of == key {
			pods = append(pods, other)
		}
	}
	priority := p.Groups.Priority(pg, pods)

	return priority < below && decide.Preemptible(pg, priority)
}

// verifyPlan checks on the live cluster that every pod of a plan passes the filters
// at its place once the victims are gone. Only the scheduling goroutine may call it.
func (p *Preemptor) verifyPlan(ctx context.Context, key types.NamespacedName, g *decide.Gang, of *plan) error {
	done := p.Reservations.Try(key)
	defer done()
	dry, err := p.liveDryRun(ctx, key, g, of)
	if err != nil {
		return err
	}

	return dry.verify(g, of, p.Groups.Current, time.Now())
}

// liveDryRun prepares a dry run for the pods of a plan on the live cluster. Only the
// scheduling goroutine may call it.
func (p *Preemptor) liveDryRun(ctx context.Context, key types.NamespacedName, g *decide.Gang, of *plan) (*dryRun, error) {
	if err := p.Kube.Cache.UpdateSnapshot(klog.FromContext(ctx), p.Snapshot); err != nil {
		return nil, err
	}
	nodes, err := p.Snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	fw := p.Kube.Profiles[of.pods[0].Spec.SchedulerName]
	if fw == nil {
		return nil, fmt.Errorf("no profile for scheduler %q", of.pods[0].Spec.SchedulerName)
	}
	g.Compare(placement.Selective(p.Snapshot, key.Namespace))

	return newDryRun(ctx, fw, nodes, g, of.priority)
}
