package delivery

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/bench/harness"
)

// drift measures the time from the response to a client that changed a resource to the moment when
// a watch shows it corrected.
func (d *controlPlane) drift(ctx context.Context, ns string) ([]harness.Result, error) {
	all, err := resources(ns, 2*drifting, 1)
	if err != nil {
		return nil, err
	}
	w, err := d.watch(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	burst, err := d.correctedAtOnce(ctx, w, all[:drifting])
	if err != nil {
		return nil, err
	}
	plain, err := d.plainDrift(ctx)
	if err != nil {
		return nil, err
	}
	var single []float64
	for _, o := range all[drifting:] {
		took, err := d.corrected(ctx, w, o)
		if err != nil {
			return nil, err
		}
		single = append(single, took)
	}

	return []harness.Result{
		{Name: "delivery/drift-plain-p99", Value: percentile(plain, 0.99)},
		{Name: "delivery/drift-at-once-p50", Value: percentile(burst, 0.5)},
		{Name: "delivery/drift-at-once-p99", Value: percentile(burst, 0.99)},
		{Name: "delivery/drift-at-once-ratio", Value: percentile(burst, 0.99) / percentile(plain, 0.99)},
		{Name: "delivery/drift-single-p50", Value: percentile(single, 0.5)},
		{Name: "delivery/drift-single-p99", Value: percentile(single, 0.99)},
	}, nil
}

// correctedAtOnce changes resources at the same time, and returns how long each of them stayed
// like that.
func (d *controlPlane) correctedAtOnce(ctx context.Context, w *watcher, all []*unstructured.Unstructured) ([]float64, error) {
	var (
		times  []float64
		mu     sync.Mutex
		wg     sync.WaitGroup
		failed error
	)
	for _, o := range all {
		wg.Go(func() {
			took, err := d.corrected(ctx, w, o)
			mu.Lock()
			defer mu.Unlock()
			times = append(times, took)
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()

	return times, failed
}

// plainDrift is drift of resources which a plain loop has applied, and which a plain watch
// corrects with as many clients as the manager has workers. It is how fast the API server is.
func (d *controlPlane) plainDrift(ctx context.Context) ([]float64, error) {
	const ns = "plain-1"
	all, err := resources(ns, drifting, 1)
	if err != nil {
		return nil, err
	}
	w, err := d.watch(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer w.stop()
	changed := make(chan string, drifting)
	w.correct(changed)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(changed)
	byName := map[string]*unstructured.Unstructured{}
	for _, o := range all {
		byName[o.GetKind()+" "+o.GetName()] = o
	}
	for range harness.Clients {
		wg.Go(func() {
			for name := range changed {
				// If it fails, the resource is not corrected in time.
				_ = d.Apply(ctx, client.ApplyConfigurationFromUnstructured(byName[name].DeepCopy()), client.ForceOwnership, client.FieldOwner(applier))
			}
		})
	}

	return d.correctedAtOnce(ctx, w, all)
}

// corrected changes a resource as another client, and returns how many milliseconds it stayed like
// that.
func (d *controlPlane) corrected(ctx context.Context, w *watcher, o *unstructured.Unstructured) (float64, error) {
	right := w.expect(o)
	drifted := o.DeepCopy()
	change := fmt.Sprintf(`{"metadata": {"annotations": {%q: "stolen"}}}`, revision)
	if err := d.Patch(ctx, drifted, client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner("somebody")); err != nil {
		return 0, err
	}
	answered := time.Now()
	if drifted.GetAnnotations()[revision] != "stolen" {
		return 0, fmt.Errorf("no client could change %s %s", o.GetKind(), o.GetName())
	}
	select {
	case at := <-right:
		return float64(at.Sub(answered).Microseconds()) / 1000, nil
	case <-time.After(time.Minute):
		return 0, fmt.Errorf("%s %s was not put right in a minute", o.GetKind(), o.GetName())
	}
}

// A watcher sees when resources are put right.
type watcher struct {
	watches []watch.Interface

	mu      sync.Mutex
	stolen  map[string]bool
	waiting map[string]chan time.Time
	// changed gets the resources that should be corrected, if it is not nil.
	changed chan string
}

func (d *controlPlane) watch(ctx context.Context, ns string) (*watcher, error) {
	w := &watcher{stolen: map[string]bool{}, waiting: map[string]chan time.Time{}}
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		events, err := d.Watch(ctx, list, client.InNamespace(ns))
		if err != nil {
			w.stop()

			return nil, err
		}
		w.watches = append(w.watches, events)
		go func() {
			for e := range events.ResultChan() {
				if o, ok := e.Object.(*metav1.PartialObjectMetadata); ok {
					w.see(kind.Kind+" "+o.Name, o.Annotations[revision], time.Now())
				}
			}
		}()
	}

	return w, nil
}

func (w *watcher) stop() {
	for _, one := range w.watches {
		one.Stop()
	}
}

// correct has the resources that are changed sent to a channel, which must have room for all.
func (w *watcher) correct(changed chan string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = changed
}

// expect returns a channel that reports when a resource, which a client is about to change, is
// corrected.
func (w *watcher) expect(o *unstructured.Unstructured) <-chan time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	right := make(chan time.Time, 1)
	w.waiting[o.GetKind()+" "+o.GetName()] = right

	return right
}

func (w *watcher) see(name, rev string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	right, ok := w.waiting[name]
	switch {
	case !ok:
	case rev == "stolen":
		if w.changed != nil && !w.stolen[name] {
			w.changed <- name
		}
		w.stolen[name] = true
	case w.stolen[name]:
		right <- now
		delete(w.waiting, name)
	}
}

// percentile is the value that as many are at most.
func percentile(all []float64, part float64) float64 {
	slices.Sort(all)

	return all[min(len(all)-1, int(math.Ceil(part*float64(len(all))))-1)]
}
