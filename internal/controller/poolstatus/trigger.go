package poolstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
)

// TriggerPath is where a recalculation is asked for.
const TriggerPath = "/recalculate"

// How often it may be asked for. A recount costs a list of a pool's Subnets, so
// this protects the manager, not the API server.
const (
	triggerRate  = 5 // per second
	triggerBurst = 20
	// triggerTimeout is how long a request waits for a controller that takes it:
	// just after an election there is none yet.
	triggerTimeout = 5 * time.Second
)

// Parameters of the request.
const (
	namespaceParameter = "namespace"
	poolParameter      = "pool"
)

type trigger = event.TypedGenericEvent[types.NamespacedName]

// A Trigger makes pools be counted again when a client asks for it, by
//
//	POST /recalculate?namespace=NS[&pool=NAME]
//
// Package access checks the permissions of the client.
type Trigger struct {
	cache   client.Reader
	recount func(ctx context.Context, pool types.NamespacedName) error
	elected <-chan struct{}
	limiter *rate.Limiter
	events  chan trigger
}

// NewTrigger returns a Trigger. It reads pools from a cache, and works once
// elected is closed: only a replica that leads has something to count.
func NewTrigger(cache client.Reader, recount func(context.Context, types.NamespacedName) error, elected <-chan struct{}) *Trigger {
	return &Trigger{
		cache: cache, recount: recount, elected: elected,
		limiter: rate.NewLimiter(triggerRate, triggerBurst), events: make(chan trigger),
	}
}

// Enqueue makes the controller reconcile a pool, unless ctx ends first. It is for callers that know
// of a change before any event.
func (t *Trigger) Enqueue(ctx context.Context, pool types.NamespacedName) { _ = t.offer(ctx, pool) }

// offer returns why the pool was not queued.
func (t *Trigger) offer(ctx context.Context, pool types.NamespacedName) error {
	select {
	case t.events <- trigger{Object: pool}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// source brings what was asked for to the controller.
func (t *Trigger) source() source.Source {
	return source.Channel(t.events, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
		GenericFunc: func(_ context.Context, e trigger, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			q.AddAfter(reconcile.Request{NamespacedName: e.Object}, gather)
		},
	})
}

// Wanted reads the pool that a request names; without a name it is all of the
// namespace.
func Wanted(r *http.Request) (types.NamespacedName, error) {
	q := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if name != namespaceParameter && name != poolParameter {
			return types.NamespacedName{}, fmt.Errorf("unknown parameter %q: there are %s and %s", name, namespaceParameter, poolParameter)
		}
	}
	key := types.NamespacedName{Namespace: q.Get(namespaceParameter), Name: q.Get(poolParameter)}
	if key.Namespace == "" {
		return key, fmt.Errorf("%s is missing: POST %s?%s=NAMESPACE&%s=NAME, or without %s for all of the namespace",
			namespaceParameter, TriggerPath, namespaceParameter, poolParameter, poolParameter)
	}

	return key, nil
}

// ServeHTTP answers 202 once the pools are in the queue.
func (t *Trigger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST makes pools be counted again", http.StatusMethodNotAllowed)

		return
	}
	key, err := Wanted(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}
	select {
	case <-t.elected:
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "this replica does not lead: ask again, and another may answer", http.StatusServiceUnavailable)

		return
	}
	if !t.limiter.Allow() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("more than %d requests per second: ask again later", triggerRate), http.StatusTooManyRequests)

		return
	}
	t.enqueue(w, r, key)
}

func (t *Trigger) enqueue(w http.ResponseWriter, r *http.Request, key types.NamespacedName) {
	pools, err := t.pools(r.Context(), key)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)

		return
	}
	if len(pools) == 0 && key.Name != "" {
		http.Error(w, fmt.Sprintf("there is no SubnetPool %s", key), http.StatusNotFound)

		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), triggerTimeout)
	defer cancel()
	queued := make([]string, 0, len(pools))
	for _, pool := range pools {
		if err := t.recount(ctx, pool); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)

			return
		}
		if t.offer(ctx, pool) != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("%d of %d pools are in the queue, and the controller does not take the next one: try again later", len(queued), len(pools)), http.StatusServiceUnavailable)

			return
		}
		queued = append(queued, pool.String())
	}
	answer, err := json.Marshal(map[string][]string{"queued": queued})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)

		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(append(answer, '\n')) // the client has closed the connection
}

// pools are those that exist of what was asked for.
func (t *Trigger) pools(ctx context.Context, key types.NamespacedName) ([]types.NamespacedName, error) {
	list := &v1alpha1.SubnetPoolList{}
	if err := t.cache.List(ctx, list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list SubnetPools: %w", err)
	}
	var found []types.NamespacedName
	for i := range list.Items {
		if key.Name == "" || key.Name == list.Items[i].Name {
			found = append(found, client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
	slices.SortFunc(found, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })

	return found, nil
}
