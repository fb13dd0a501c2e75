package delivery

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// An environment is what the parts of a delivery share.
type environment struct {
	// client is of the cluster of the compositions, and reader is past its cache. remote is of the
	// cluster that is delivered to.
	client client.Client
	reader client.Reader
	remote client.Client

	mapper    *kindCache
	manifests *decide.Reader
	status    *statusWriter
	health    *healthTracker
	events    *eventRecorder
	metrics   *Metrics
	now       func() time.Time

	// drift is DriftCorrect, DriftReport or DriftInterval, and manager the field manager that
	// objects are applied as.
	drift, manager string
	scope          tenancy.Scope

	// queue has the resources that workers work on.
	queue workqueue.TypedRateLimitingInterface[key]
	// compositions is the queue of the controller, nil until that is started.
	compositions atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

// requeues remembers the queue of compositions, so that workers can have one reconciled.
func (e *environment) requeues(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.compositions.Store(&queue)

	return nil
}

// requeue has the conditions of a composition reported again, once for everything that
// happens at about the same time.
func (e *environment) requeue(name types.NamespacedName) { e.requeueAfter(name, gather) }

// requeueAfter has a composition reconciled after some time.
func (e *environment) requeueAfter(name types.NamespacedName, wait time.Duration) {
	if queue := e.compositions.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: name}, wait)
	}
}

// readManifest reads a manifest. The identity is normalized by the scope of its kind.
func (e *environment) readManifest(m enov1.Manifest, composition map[string]string) (*decide.Resource, error) {
	return e.manifests.Read(m, composition)
}

// scopeOf reports whether a kind is namespaced, in any version that is served. The version
// of the manifest comes first: the mapper may not know it yet, and asks the server. If the
// server does not serve the kind, it is not asked again for a few seconds.
func (e *environment) scopeOf(gvk schema.GroupVersionKind) (namespaced, known bool) {
	mapping, err := e.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		mapping, err = e.mapper.RESTMapping(gvk.GroupKind())
	}
	if err != nil {
		return false, false
	}

	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// publish has a state written that was not settled by the worker of the item, or the later
// state that a worker has settled at the same time.
func (e *environment) publish(v *view, it *item, s enov1.ResourceState) {
	for {
		e.status.set(v, it, s)
		now := v.stateOf(it)
		if equality.Semantic.DeepEqual(now, s) {
			return
		}
		s = now
	}
}

func (e *environment) timestamp() metav1.Time { return metav1.NewTime(e.now()).Rfc3339Copy() }
