package delivery

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
)

// sliceHandler has a composition reconciled when another client has changed a slice of its
// current synthesis.
func (d *Deliverer) sliceHandler() handler.Funcs {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			version := e.ObjectNew.GetResourceVersion()
			if version == e.ObjectOld.GetResourceVersion() {
				return
			}
			if owner, s := d.sliceOf(e.ObjectNew); s != nil && s.Events.Saw(version) {
				q.AddAfter(reconcile.Request{NamespacedName: owner}, status.Gather) // the answer to a write may follow
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if owner, s := d.sliceOf(e.Object); s != nil {
				s.Events.SawDeletion()
				q.Add(reconcile.Request{NamespacedName: owner})
			}
		},
	}
}

// sliceOf returns the composition of a slice, and the slice if it is of its current synthesis.
func (d *Deliverer) sliceOf(o client.Object) (types.NamespacedName, *model.Slice) {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != enov1.CompositionKind {
		return types.NamespacedName{}, nil
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}
	v := d.View(name)
	if v == nil || v.UID != owner.UID {
		return name, nil
	}

	return name, v.Slices[o.GetName()]
}
