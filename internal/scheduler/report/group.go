package report

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// writeGroupStatus brings the status of a PodGroup up to date.
func (r *Reporter) writeGroupStatus(ctx context.Context, key types.NamespacedName) error {
	f := r.Facts(key)
	if f.Group == nil {
		r.forget(key)
		r.pods.Add(key) // their condition names the missing group

		return nil
	}
	if r.foreign(f.Pods) {
		return nil
	}
	want := decide.Show(f, metav1.Now())
	if wait := r.passes(key, decide.Passing(f.Group, want)); wait > 0 {
		r.status.AddAfter(key, wait)

		return nil
	}
	if r.outdated(f) {
		r.pods.Add(key)
	}
	counts := !r.narrow.Load()
	if wait := time.Until(r.last(key).written.Add(steady)); wait > 0 && decide.Keep(f.Group, &want, counts) {
		r.status.AddAfter(key, wait)
	}
	if decide.Shown(f.Group, want, counts) {
		return nil
	}
	if !r.yieldToBinding(ctx, decide.Changed(f.Group, want)) {
		r.status.AddAfter(key, later)

		return nil
	}

	return r.writeStatus(ctx, key, f.Group, &want)
}

// passes returns how long a group has to keep a passing reason before it is
// written.
func (r *Reporter) passes(key types.NamespacedName, passing bool) time.Duration {
	var wait time.Duration
	r.update(key, func(is *record) {
		switch {
		case !passing:
			is.passing = time.Time{}
		case is.passing.IsZero():
			is.passing, wait = time.Now(), lasting
		default:
			wait = time.Until(is.passing.Add(lasting))
		}
	})

	return wait
}

// yieldToBinding limits status writes, most of all while pods are being bound. A
// new reason waits for its turn. Figures do not: it reports whether they may be
// written now.
func (r *Reporter) yieldToBinding(ctx context.Context, changed bool) bool {
	limit := r.fast
	if time.Since(time.Unix(0, r.busy.Load())) < rush {
		limit = r.slow
	}
	if !changed {
		return limit.TryAccept()
	}
	_ = limit.Wait(ctx) // it returns early when the process ends

	return true
}

// writeStatus writes the scheduler's part of the status. The conditions are
// written as a whole, so the write fails if another writer was faster.
func (r *Reporter) writeStatus(ctx context.Context, key types.NamespacedName, pg *v2alpha2.PodGroup, want *v2alpha2.PodGroupStatus) error {
	patch, err := statusPatch(pg, want)
	if err != nil {
		return err
	}
	now := &v2alpha2.PodGroup{}
	err = r.groups.REST.Patch(types.MergePatchType).Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).SubResource("status").
		Param("fieldManager", settings.Name).Body(patch).Do(ctx).Into(now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot write the status of PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
	}
	r.narrow.Store(want.Placed != nil && now.Status.Placed == nil)
	r.update(key, func(is *record) { is.written, is.passing = time.Now(), time.Time{} })
	if kind, c := decide.Transition(pg, *want); c != nil {
		r.recorder.Eventf(reference(pg), nil, kind, c.Reason, "Scheduling", "%s", c.Message)
	}

	return nil
}

// statusPatch returns a merge patch.
func statusPatch(pg *v2alpha2.PodGroup, want *v2alpha2.PodGroupStatus) ([]byte, error) {
	had, has := pg.Status.ResourcesStatus, want.ResourcesStatus

	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pg.UID, "resourceVersion": pg.ResourceVersion},
		"status": map[string]any{
			"conditions": want.Conditions, "placed": want.Placed, "subGroups": want.SubGroups,
			"schedulingConditions": want.SchedulingConditions,
			"resourcesStatus": map[string]any{
				"requested":               replaced(had.Requested, has.Requested),
				"allocated":               replaced(had.Allocated, has.Allocated),
				"allocatedNonPreemptible": replaced(had.AllocatedNonPreemptible, has.AllocatedNonPreemptible),
			},
		},
	})
}

// replaced is the merge patch from one list to the other: a null removes an
// entry, or all of them.
func replaced(had, has corev1.ResourceList) map[corev1.ResourceName]any {
	if len(has) == 0 {
		return nil
	}
	patch := map[corev1.ResourceName]any{}
	for name := range had {
		patch[name] = nil
	}
	for name, quantity := range has {
		patch[name] = quantity
	}

	return patch
}

// manyVictims is how many pods may be evicted for each pod that is placed before
// a Warning says so.
const manyVictims = 4

// Preempted records that pods were evicted to make room for asked pods of a
// gang.
func (r *Reporter) Preempted(key types.NamespacedName, victims, asked int) {
	pg := r.groups.Group(key)
	if pg == nil {
		return
	}
	r.recorder.Eventf(reference(pg), nil, corev1.EventTypeNormal, v2alpha2.ReasonPreempting, "Scheduling",
		"%d less important pods are evicted to make room for %d pods", victims, asked)
	if victims > manyVictims*asked {
		r.recorder.Eventf(reference(pg), nil, corev1.EventTypeWarning, "ManyPreempted", "Scheduling",
			"%d pods are evicted to make room for %d, more than %d for each: limit it with --max-eviction-ratio", victims, asked, manyVictims)
	}
}

// Dropped records that the reservation that an annotation of a PodGroup describes is not used.
func (r *Reporter) Dropped(pg *v2alpha2.PodGroup, why error) {
	r.recorder.Eventf(reference(pg), nil, corev1.EventTypeWarning, "ReservationDropped", "Scheduling",
		"the reservation that is recorded in an annotation is dropped: %s", why)
}

// reference is for the recorder, which does not know the kind.
func reference(pg *v2alpha2.PodGroup) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v2alpha2.GroupVersion.String(), Kind: "PodGroup",
		Namespace: pg.Namespace, Name: pg.Name, UID: pg.UID, ResourceVersion: pg.ResourceVersion,
	}
}
