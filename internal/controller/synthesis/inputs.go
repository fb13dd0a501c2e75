package synthesis

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/synthesis"
)

const (
	// unserved is after how long a kind is looked for again that did not exist.
	unserved = 10 * time.Second
	// unsynced is the same for a kind that is watched and not listed yet.
	unsynced = 200 * time.Millisecond
)

// inputs watches the input objects of compositions, as metadata only, one watch for each kind that
// is in use. It has its own cache: a kind that it stops to watch may still be watched by other
// controllers.
type inputs struct {
	cache  cache.Cache
	mapper meta.RESTMapper
	// rules are those between tenants.
	rules tenancy.Rules

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// bound is what every composition uses, and users the other way round.
	bound map[types.NamespacedName][]synthesis.Target
	users map[synthesis.Target]map[types.NamespacedName]bool
	kinds map[schema.GroupVersionKind]*watched
}

// watched is a kind, and how many targets of it there are.
type watched struct {
	informer cache.Informer
	targets  int
}

func newInputs(mgr ctrl.Manager, rules tenancy.Rules) (*inputs, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of inputs: %w", err)
	}

	return &inputs{
		cache: c, mapper: mgr.GetRESTMapper(), rules: rules, bound: map[types.NamespacedName][]synthesis.Target{},
		users: map[synthesis.Target]map[types.NamespacedName]bool{}, kinds: map[schema.GroupVersionKind]*watched{},
	}, mgr.Add(c)
}

// source brings back compositions whose inputs changed.
func (in *inputs) source(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.queue = queue

	return nil
}

// look returns what is known of the inputs of a composition, and after how long to requeue it if
// that is not enough. From now on, a change of them requeues the composition.
func (in *inputs) look(ctx context.Context, c *enov1.Composition, s *enov1.Synthesizer) ([]decide.Input, time.Duration, error) {
	var (
		targets []synthesis.Target
		found   []decide.Input
		again   time.Duration
	)
	for _, b := range decide.Bind(c, s, in.rules) {
		t, problem := synthesis.Resolve(in.mapper, b, in.rules)
		if problem != nil {
			if b.Name != "" && problem.Forbidden == nil {
				again = unserved
			}
			found = append(found, decide.Input{Key: b.Key, Problem: problem.Text, Forbidden: problem.Forbidden, Ignored: b.Ignored})

			continue
		}
		targets = append(targets, t)
		found = append(found, decide.Input{Key: b.Key, Ignored: b.Ignored})
	}
	if err := in.use(ctx, client.ObjectKeyFromObject(c), targets); err != nil {
		return nil, 0, err
	}
	for i := range found {
		if found[i].Problem != "" {
			continue
		}
		if err := in.read(ctx, targets[0], &found[i]); err != nil {
			return nil, 0, err
		}
		if found[i].Unknown {
			again = unsynced
		}
		targets = targets[1:]
	}

	return found, again, nil
}

// read fills in what the cache has of an input.
func (in *inputs) read(ctx context.Context, t synthesis.Target, to *decide.Input) error {
	in.mu.Lock()
	k := in.kinds[t.Kind]
	in.mu.Unlock()
	if k == nil || !k.informer.HasSynced() {
		to.Unknown, to.Problem = true, fmt.Sprintf("%s %s is not known yet", t.Kind.Kind, t.Key)

		return nil
	}
	o := partial(t.Kind)
	err := in.cache.Get(ctx, t.Key, o)
	if apierrors.IsNotFound(err) {
		to.Problem = fmt.Sprintf("%s %s does not exist", t.Kind.Kind, t.Key)

		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read %s %s: %w", t.Kind.Kind, t.Key, err)
	}
	to.Revision = new(decide.Revision(to.Key, o))

	return nil
}

// drop forgets a composition.
func (in *inputs) drop(ctx context.Context, key types.NamespacedName) error {
	return in.use(ctx, key, nil)
}

// use replaces the targets of a composition. Kinds that come into use are watched from then on, and
// those that are not used any more are not.
func (in *inputs) use(ctx context.Context, key types.NamespacedName, targets []synthesis.Target) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	old := in.bound[key]
	if len(targets) > 0 {
		in.bound[key] = targets
	} else {
		delete(in.bound, key)
	}
	for _, t := range targets {
		if err := in.add(ctx, t, key); err != nil {
			return err
		}
	}
	kept := map[synthesis.Target]bool{}
	for _, t := range targets {
		kept[t] = true
	}
	for _, t := range old {
		if !kept[t] {
			in.remove(ctx, t, key)
		}
	}

	return nil
}

func (in *inputs) add(ctx context.Context, t synthesis.Target, key types.NamespacedName) error {
	if in.users[t][key] {
		return nil
	}
	k := in.kinds[t.Kind]
	if k == nil {
		informer, err := in.cache.GetInformer(ctx, partial(t.Kind), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("cannot watch %s: %w", t.Kind, err)
		}
		if _, err := informer.AddEventHandler(in.handler(t.Kind)); err != nil {
			return fmt.Errorf("cannot watch %s: %w", t.Kind, err)
		}
		k = &watched{informer: informer}
		in.kinds[t.Kind] = k
	}
	if in.users[t] == nil {
		in.users[t] = map[types.NamespacedName]bool{}
		k.targets++
	}
	in.users[t][key] = true

	return nil
}

func (in *inputs) remove(ctx context.Context, t synthesis.Target, key types.NamespacedName) {
	if !in.users[t][key] {
		return
	}
	delete(in.users[t], key)
	if len(in.users[t]) > 0 {
		return
	}
	delete(in.users, t)
	k := in.kinds[t.Kind]
	if k.targets--; k.targets > 0 {
		return
	}
	delete(in.kinds, t.Kind)
	if err := in.cache.RemoveInformer(ctx, partial(t.Kind)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot stop to watch a kind of inputs", "kind", t.Kind.String())
	}
}

func (in *inputs) handler(kind schema.GroupVersionKind) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { in.wake(kind, o) },
		UpdateFunc: func(_, o any) { in.wake(kind, o) },
		DeleteFunc: func(o any) { in.wake(kind, o) },
	}
}

// wake brings back the compositions that use an object.
func (in *inputs) wake(kind schema.GroupVersionKind, o any) {
	name, err := toolscache.DeletionHandlingObjectToName(o)
	if err != nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.queue == nil {
		return // the first look finds it
	}
	for key := range in.users[synthesis.Target{Kind: kind, Key: types.NamespacedName{Namespace: name.Namespace, Name: name.Name}}] {
		in.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)

	return o
}
