// Package podgroup shows on every PodGroup whether its tree can be used. It matters most for
// objects stored before the webhook existed.
package podgroup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/kube"
)

const (
	workers = 4

	// action is that of the events of this controller.
	action = "Validate"
)

// A Reconciler keeps the condition Valid true.
type Reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	now      func() time.Time
}

// SetupWithManager starts it with the manager.
func SetupWithManager(mgr ctrl.Manager) error {
	r := &Reconciler{client: mgr.GetClient(), recorder: mgr.GetEventRecorder("arbor-podgroups"), now: time.Now}

	return ctrl.NewControllerManagedBy(mgr).
		Named("podgroup-validity").
		For(&v2alpha2.PodGroup{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(kube.Patient(reconcile.AsReconciler(mgr.GetClient(), r)))
}

// Reconcile compares the condition with the one that belongs there.
func (r *Reconciler) Reconcile(ctx context.Context, pg *v2alpha2.PodGroup) (reconcile.Result, error) {
	want := decide.Valid(pg, metav1.NewTime(r.now()))
	have, ok := condition(pg)
	if ok && shown(have, want) {
		return reconcile.Result{}, nil
	}
	if err := r.show(ctx, pg, want); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !ok || have.Status != want.Status || have.Message != want.Message {
		r.report(pg, have, want)
	}

	return reconcile.Result{}, nil
}

// shown reports whether the condition is there. A CRD of another release may have no field for the
// generation; then it must not be written again and again.
func shown(have, want v2alpha2.PodGroupCondition) bool {
	if have.ObservedGeneration == 0 {
		want.ObservedGeneration = 0
	}

	return have == want
}

// show writes the condition and nothing else. The list of conditions is written as a whole, so the
// write fails if another client wrote in between.
func (r *Reconciler) show(ctx context.Context, pg *v2alpha2.PodGroup, want v2alpha2.PodGroupCondition) error {
	base := client.MergeFromWithOptions(pg.DeepCopy(), client.MergeFromWithOptimisticLock{})
	set(pg, want)
	if err := r.client.Status().Patch(ctx, pg, base); err != nil {
		return fmt.Errorf("cannot write the condition %s: %w", want.Type, err)
	}

	return nil
}

// report records an event if a group has become invalid, or valid again. A group that always was
// valid has none.
func (r *Reconciler) report(pg *v2alpha2.PodGroup, have, want v2alpha2.PodGroupCondition) {
	switch {
	case want.Status == metav1.ConditionFalse:
		r.recorder.Eventf(pg, nil, corev1.EventTypeWarning, want.Reason, action, "%s", want.Message)
	case have.Status == metav1.ConditionFalse:
		r.recorder.Eventf(pg, nil, corev1.EventTypeNormal, want.Reason, action, "%s", want.Message)
	}
}

func condition(pg *v2alpha2.PodGroup) (v2alpha2.PodGroupCondition, bool) {
	for _, c := range pg.Status.Conditions {
		if c.Type == v2alpha2.PodGroupValid {
			return c, true
		}
	}

	return v2alpha2.PodGroupCondition{}, false
}

func set(pg *v2alpha2.PodGroup, want v2alpha2.PodGroupCondition) {
	for i, c := range pg.Status.Conditions {
		if c.Type == want.Type {
			pg.Status.Conditions[i] = want

			return
		}
	}
	pg.Status.Conditions = append(pg.Status.Conditions, want)
}
