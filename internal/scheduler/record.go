package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// clearsPerSecond bounds how fast nominations are cleared: each makes the queue look at
// every pending pod.
const clearsPerSecond = 20

// recordReason is why room is reserved.
const recordReason = "Preemption"

// A reservationRecord is the annotation that tells another process of a reservation. The places
// are in the status of the pods.
type reservationRecord struct {
	Generation int64  `json:"generation"`
	Reason     string `json:"reason"`
	// Deadline is when the reservation ends at the latest, however often the scheduler is
	// restarted.
	Deadline time.Time   `json:"deadline"`
	Victims  []types.UID `json:"victims"`
}

// recordOf reads the record of a PodGroup. It is nil if there is none, and an error
// if it does not parse.
func recordOf(pg *v2alpha2.PodGroup) (*reservationRecord, error) {
	text, ok := pg.Annotations[v2alpha2.ReservationAnnotation]
	if !ok {
		return nil, nil //nolint:nilnil // most groups have none
	}
	r := &reservationRecord{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("annotation %s of PodGroup %s/%s: %w", v2alpha2.ReservationAnnotation, pg.Namespace, pg.Name, err)
	}

	return r, nil
}

// record writes the record of a plan. It comes before the nominations and these before
// the evictions, so a process that ends in between leaves either no evictions or a
// record of them.
func (s *Scheduler) record(ctx context.Context, pg *v2alpha2.PodGroup, of *plan) error {
	if of.recovered && !of.unrecorded {
		return nil
	}
	r := reservationRecord{Generation: of.generation, Reason: recordReason, Deadline: of.deadline.UTC().Truncate(time.Second)}
	for _, pod := range of.victims {
		r.Victims = append(r.Victims, pod.UID)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}

	return s.annotate(ctx, pg, v2alpha2.ReservationAnnotation, new(string(text)))
}

// annotate sets an annotation of a PodGroup, or removes it if value is nil.
func (s *Scheduler) annotate(ctx context.Context, pg *v2alpha2.PodGroup, name string, value *string) error {
	return s.annotateVersion(ctx, pg, "", name, value)
}

// annotateVersion does so only if the PodGroup has the resource version, if one is
// given. Otherwise it returns a conflict.
func (s *Scheduler) annotateVersion(ctx context.Context, pg *v2alpha2.PodGroup, version, name string, value *string) error {
	metadata := map[string]any{"uid": pg.UID, "annotations": map[string]*string{name: value}}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	err = s.groups.rest.Patch(types.MergePatchType).Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).
		Param("fieldManager", Name).Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write annotation %s of PodGroup %s/%s: %w", name, pg.Namespace, pg.Name, err)
	}

	return nil
}

// cleanUp removes what is left of reservations and binding rounds that have ended: the
// record, and the nominations of pods that still wait. It is level-based: a group is added
// when one of them ends, and whenever a record without a reservation is seen. Records of
// groups that another scheduler places are its own.
func (s *Scheduler) cleanUp(ctx context.Context, key types.NamespacedName) error {
	pods := s.groups.members(key)
	if s.reservations.of(key) != nil || !slices.ContainsFunc(pods, s.answers) {
		return nil
	}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" || !s.groups.mayBeNominated(pod) || s.groups.isCommitted(pod.UID) {
			continue
		}
		if err := s.clears.Wait(ctx); err != nil {
			return err
		}
		if s.reservations.of(key) != nil { // a new one, with nominations of its own
			return nil
		}
		if s.groups.isCommitted(pod.UID) {
			continue // it is being bound again
		}
		if err := s.groups.setNominatedNode(ctx, pod, ""); err != nil {
			return err
		}
	}

	return s.removeRecord(ctx, key)
}

// removeRecord removes the record of a reservation, if the group has one.
func (s *Scheduler) removeRecord(ctx context.Context, key types.NamespacedName) error {
	pg := s.groups.group(key)
	if pg == nil {
		return nil
	}
	if _, ok := pg.Annotations[v2alpha2.ReservationAnnotation]; !ok {
		return nil
	}

	return s.annotate(ctx, pg, v2alpha2.ReservationAnnotation, nil)
}

// mayEvict reports whether a pod may be evicted for a priority, together with others. Its
// gang is judged as it was before the first of them was evicted: those no longer count as
// members, and what is left may have another priority. Users can edit the record of a
// PodGroup, so it is not trusted.
func (s *Scheduler) mayEvict(pod *corev1.Pod, below int32, together []*corev1.Pod) bool {
	key, ok := decide.GroupOf(pod)
	pg := s.groups.group(key)
	if !ok || pg == nil {
		return corev1helpers.PodPriority(pod) < below
	}
	pods := s.groups.members(key)
	for _, other := range append([]*corev1.Pod{pod}, together...) {
		if of, ok := decide.GroupOf(other); ok && of == key {
			pods = append(pods, other)
		}
	}
	priority := s.groups.priority(pg, pods)

	return priority < below && decide.Preemptible(pg, priority)
}

// verifyPlan checks on the live cluster that every pod of a plan passes the filters
// at its place once the victims are gone. Only the scheduling goroutine may call it.
func (s *Scheduler) verifyPlan(ctx context.Context, key types.NamespacedName, g *decide.Gang, of *plan) error {
	done := s.reservations.try(key)
	defer done()
	dry, err := s.liveDryRun(ctx, key, g, of)
	if err != nil {
		return err
	}

	return dry.verify(g, of, s.groups.current, time.Now())
}

// liveDryRun prepares a dry run for the pods of a plan on the live cluster. Only the
// scheduling goroutine may call it.
func (s *Scheduler) liveDryRun(ctx context.Context, key types.NamespacedName, g *decide.Gang, of *plan) (*dryRun, error) {
	if err := s.kube.Cache.UpdateSnapshot(klog.FromContext(ctx), s.snapshot); err != nil {
		return nil, err
	}
	nodes, err := s.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	fw := s.kube.Profiles[of.pods[0].Spec.SchedulerName]
	if fw == nil {
		return nil, fmt.Errorf("no profile for scheduler %q", of.pods[0].Spec.SchedulerName)
	}
	g.Compare(selective(s.snapshot, key.Namespace))

	return newDryRun(ctx, fw, nodes, g, of.priority)
}
