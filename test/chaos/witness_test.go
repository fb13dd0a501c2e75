package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

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
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		must(l, c.List(ctx, list, client.InNamespace(l.ns)))
		// The list that is watched must not be shared.
		watched := cache.WatchFuncWithContext(func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list.DeepCopy(), &client.ListOptions{Namespace: l.ns, Raw: &options})
		})
		events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: watched})
		must(l, err)
		l.always.Go(func() { l.observe(ctx, events.ResultChan()) })
	}
	l.always.Go(func() { every(ctx, 150*time.Millisecond, l.release) })
	l.Cleanup(func() {
		cancel()
		l.always.Wait()
	})
}

// observe hands events on until the watch ends.
func (l *load) observe(ctx context.Context, events <-chan watch.Event) {
	for event := range events {
		if o, ok := event.Object.(*unstructured.Unstructured); ok {
			l.ledger.History.Observe(event.Type, o)
		} else {
			l.ledger.History.Fail(fmt.Errorf("%s %v", event.Type, event.Object))
		}
	}
	if ctx.Err() == nil {
		l.ledger.History.Fail(errors.New("the watch has ended"))
	}
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
