package env

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
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	"github.com/arbor-control/arbor/internal/controller/delivery/health"
	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/controller/delivery/metric"
	"github.com/arbor-control/arbor/internal/controller/delivery/model"
	"github.com/arbor-control/arbor/internal/controller/delivery/queue"
	"github.com/arbor-control/arbor/internal/controller/delivery/status"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

// An Environment is what the parts of a delivery share.
type Environment struct {
	// Client is of the cluster of the compositions, and reader is past its cache. remote is of the
	// cluster that is delivered to.
	Client client.Client
	Reader client.Reader
	Remote client.Client

	Mapper    *kinds.Cache
	Manifests *decide.Reader
	Status    *status.Writer
	Health    *health.Tracker
	Events    *event.Recorder
	Metrics   *metric.Metrics
	Now       func() time.Time

	// Drift is DriftCorrect, DriftReport or DriftInterval, and manager the field manager that
	// objects are applied as.
	Drift, Manager string
	Scope          tenancy.Scope

	// Queue has the resources that workers work on.
	Queue workqueue.TypedRateLimitingInterface[queue.Key]
	// Compositions is the queue of the controller, nil until that is started.
	Compositions atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

// Requeues remembers the queue of compositions, so that workers can have one reconciled.
func (e *Environment) Requeues(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.Compositions.Store(&queue)

	return nil
}

// Requeue has the conditions of a composition reported again, once for everything that
// happens at about the same time.
func (e *Environment) Requeue(name types.NamespacedName) { e.RequeueAfter(name, status.Gather) }

// RequeueAfter has a composition reconciled after some time.
func (e *Environment) RequeueAfter(name types.NamespacedName, wait time.Duration) {
	if queue := e.Compositions.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: name}, wait)
	}
}

// ReadManifest reads a manifest. The identity is normalized by the scope of its kind.
func (e *Environment) ReadManifest(m enov1.Manifest, composition map[string]string) (*decide.Resource, error) {
	return e.Manifests.Read(m, composition)
}

// ScopeOf reports whether a kind is namespaced, in any version that is served. The version
// of the manifest comes first: the mapper may not know it yet, and asks the server. If the
// server does not serve the kind, it is not asked again for a few seconds.
func (e *Environment) ScopeOf(gvk schema.GroupVersionKind) (namespaced, known bool) {
	mapping, err := e.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		mapping, err = e.Mapper.RESTMapping(gvk.GroupKind())
	}
	if err != nil {
		return false, false
	}

	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// Publish has a state written that was not settled by the worker of the item, or the later
// state that a worker has settled at the same time.
func (e *Environment) Publish(v *model.Composition, it *model.Item, s enov1.ResourceState) {
	for {
		e.Status.Set(v, it, s)
		now := v.StateOf(it)
		if equality.Semantic.DeepEqual(now, s) {
			return
		}
		s = now
	}
}

// Timestamp is the time as states have it.
func (e *Environment) Timestamp() metav1.Time { return metav1.NewTime(e.Now()).Rfc3339Copy() }
