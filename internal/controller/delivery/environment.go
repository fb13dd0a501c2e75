package delivery

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
