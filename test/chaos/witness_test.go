package chaos_test

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/invariant"
)

// history is what must be remembered about this load.
func (l *load) history() *invariant.History {
	of := func(kind, name string) invariant.Object {
		return invariant.Object{Kind: kind, Namespace: l.ns, Name: name}
	}

	return &invariant.History{
		Hook: of("ConfigMap", "hook"), Raised: of("Deployment", scaled),
		Lasting: map[invariant.Object]bool{
			of("ConfigMap", "after"): true, of("ConfigMap", "theirs"): true,
			of("Deployment", scaled): true, of("Deployment", workload): true,
		},
	}
}

// witness records every event of ConfigMaps and Deployments, and removes finalizers, as
// long as the test runs: also while the load has stopped.
func (l *load) witness() {
	l.Helper()
	c, err := client.NewWithWatch(server.Config, client.Options{Scheme: l.Scheme()})
	must(l, err)
	ctx, cancel := context.WithCancel(l.Context())
	for _, kind := range []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}} {
		l.always.Go(func() { every(ctx, 100*time.Millisecond, func(context.Context) { _ = l.observe(ctx, c, kind) }) })
	}
	l.always.Go(func() { every(ctx, 150*time.Millisecond, l.release) })
	l.Cleanup(func() {
		cancel()
		l.always.Wait()
	})
}

// observe lists and then watches objects of a kind, until events are lost: an API server
// that was killed does not know those from before.
func (l *load) observe(ctx context.Context, c client.WithWatch, kind schema.GroupVersionKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := c.List(ctx, list, client.InNamespace(l.ns)); err != nil {
		return err
	}
	l.ledger.History.Resume(kind.Kind, list.Items)
	begin := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		fresh := &unstructured.UnstructuredList{}
		fresh.SetGroupVersionKind(kind)

		return c.Watch(ctx, fresh, &client.ListOptions{Namespace: l.ns, Raw: &options})
	}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: begin})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		o, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		l.ledger.History.Observe(event.Type, o)
	}

	return nil
}

// every does something again and again until ctx ends. Requests may take a while longer.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		request, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		do(request)
		cancel()
	}
}
