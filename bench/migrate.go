package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	migrated = 500 // Deployments

	// The disputed items: one item of two, so that there is something that must not change as well.
	disputed = "spec.template.spec.initContainers[name=bash]"
)

// The object that the first manager creates. It is paused, so that its controller writes the status
// once and then rests: every later request is one that is measured.
const (
	deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {labels: {team: a}}
spec:
  paused: true
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: bash, image: "base:1", command: [sh], imagePullPolicy: Always, resources: {limits: {cpu: 100m}}}
      - {name: other, image: "other:1"}
      containers:
      - {name: web, image: "web:1"}
`
	// The manifest that eno then applies.
	partText = `
apiVersion: apps/v1
kind: Deployment
metadata: {labels: {by: eno}}
spec: {template: {spec: {initContainers: [{name: bash, image: "base:2"}]}}}
`
	// And what it wants in the end: without the item.
	desiredText = `
apiVersion: apps/v1
kind: Deployment
metadata: {labels: {by: eno}}
`
)

// migrate measures migrations of ownership, and as many patches that change
// nothing, of the same objects by the same clients.
func migrate(b *harness.Board) error {
	return harness.OnControlPlane(func(u *cluster.Up) error {
		ctx := context.Background()
		y, err := newMigration(u)
		if err != nil {
			return err
		}
		moving, err := y.moving(ctx, "moved")
		if err != nil {
			return err
		}
		b.Show(moving...)
		applying, err := y.applying(ctx, "applied")
		if err != nil {
			return err
		}
		b.Show(applying...)

		return nil
	})
}

// A migration is a client of which the requests are counted.
type migration struct {
	client.Client

	requests atomic.Int64
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip makes a function a transport.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newMigration(u *cluster.Up) (*migration, error) {
	y := &migration{}
	config := rest.CopyConfig(u.Config)
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			y.requests.Add(1)

			return next.RoundTrip(r)
		})
	})
	var err error
	y.Client, err = client.New(config, client.Options{})

	return y, err
}

// A pace is how fast something was done, and with how many requests each time.
type pace struct{ perSecond, requests float64 }

// measure does something with each Deployment of a namespace.
func (y *migration) measure(ns string, do func(name string) error) (pace, error) {
	before := y.requests.Load()
	rate, err := harness.PerSecond(migrated, func(i int) error {
		if err := do(deploymentName(i)); err != nil {
			return fmt.Errorf("%s/%s: %w", ns, deploymentName(i), err)
		}

		return nil
	})

	return pace{rate, float64(y.requests.Load()-before) / migrated}, err
}

// moving is about moves without anything that is applied after them.
func (y *migration) moving(ctx context.Context, ns string) ([]harness.Result, error) {
	before, err := y.seed(ctx, ns)
	if err != nil {
		return nil, err
	}
	patches, err := y.measure(ns, func(name string) error {
		return y.Patch(ctx, deployment(ns, name), client.RawPatch(types.MergePatchType, []byte("{}")))
	})
	if err != nil {
		return nil, err
	}
	if err := y.compare(ctx, ns, before, unwritten); err != nil {
		return nil, err
	}
	m := ownership.New(y, ownership.Options{})
	moves, err := y.measure(ns, func(name string) error {
		return expect(true)(m.Migrate(ctx, ownership.Request{Object: deployment(ns, name)}))
	})
	if err != nil {
		return nil, err
	}
	if err := y.compare(ctx, ns, before, moved); err != nil {
		return nil, err
	}
	again, err := y.again(ctx, ns, m)

	return []harness.Result{
		{Name: "migrate/migrations", Value: moves.perSecond},
		{Name: "migrate/no-op-patches", Value: patches.perSecond},
		{Name: "migrate/time-ratio", Value: patches.perSecond / moves.perSecond},
		{Name: "migrate/requests", Value: moves.requests},
		{Name: "migrate/requests-ratio", Value: moves.requests / patches.requests},
		{Name: "migrate/again-requests", Value: again.requests},
	}, err
}

// again migrates what is migrated.
func (y *migration) again(ctx context.Context, ns string, m *ownership.Migrator) (pace, error) {
	before, err := y.all(ctx, ns)
	if err != nil {
		return pace{}, err
	}
	again, err := y.measure(ns, func(name string) error {
		return expect(false)(m.Migrate(ctx, ownership.Request{Object: deployment(ns, name)}))
	})
	if err != nil {
		return pace{}, err
	}

	return again, y.compare(ctx, ns, before, unwritten)
}

// applying measures moves with their purpose: an apply that the server rejects before.
func (y *migration) applying(ctx context.Context, ns string) ([]harness.Result, error) {
	before, err := y.seed(ctx, ns)
	if err != nil {
		return nil, err
	}
	m := ownership.New(y, ownership.Options{})
	applies, err := y.measure(ns, func(name string) error {
		desired, err := harness.ParseObject(desiredText, ns, name)
		if err != nil {
			return err
		}

		return expect(true)(m.Migrate(ctx, ownership.Request{Desired: desired}))
	})
	if err != nil {
		return nil, err
	}

	return []harness.Result{
		{Name: "migrate/with-apply", Value: applies.perSecond},
		{Name: "migrate/with-apply-requests", Value: applies.requests},
	}, y.compare(ctx, ns, before, removed)
}

// expect returns what is wrong with the outcome of a migration.
func expect(want bool) func(ownership.Result, error) error {
	return func(r ownership.Result, err error) error {
		if err == nil && r.Migrated != want {
			err = fmt.Errorf("migrated is %t after %d attempts, because %q", r.Migrated, r.Attempts, r.Skipped)
		}

		return err
	}
}

// seed makes Deployments with split ownership, and waits for their controller.
func (y *migration) seed(ctx context.Context, ns string) (map[string]*unstructured.Unstructured, error) {
	if err := y.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		return nil, err
	}
	_, err := y.measure(ns, func(name string) error {
		whole, err := harness.ParseObject(deploymentText, ns, name)
		if err != nil {
			return err
		}
		part, err := harness.ParseObject(partText, ns, name)
		if err != nil {
			return err
		}
		if err := y.Create(ctx, whole, client.FieldOwner("legacy")); err != nil {
			return err
		}

		return y.Apply(ctx, client.ApplyConfigurationFromUnstructured(part), client.FieldOwner(ownership.DefaultManager), client.ForceOwnership)
	})
	if err != nil {
		return nil, err
	}
	var all map[string]*unstructured.Unstructured
	err = harness.Until(ctx, harness.LongPoll, func(ctx context.Context) (bool, error) {
		all, err = y.all(ctx, ns)
		for _, o := range all {
			seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			if seen != o.GetGeneration() {
				return false, err
			}
		}

		return true, err
	})
	if err == nil {
		err = y.compare(ctx, ns, all, split)
	}

	return all, err
}

// all are the Deployments of a namespace by name.
func (y *migration) all(ctx context.Context, ns string) (map[string]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(deployment("", "").GroupVersionKind())
	if err := y.List(ctx, list, client.InNamespace(ns)); err != nil {
		return nil, err
	}
	all := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		all[list.Items[i].GetName()] = &list.Items[i]
	}
	if len(all) != migrated {
		return nil, fmt.Errorf("there are %d Deployments in %s, want %d", len(all), ns, migrated)
	}

	return all, nil
}

// compare checks what became of all Deployments: a figure of something that did
// not happen would look good.
func (y *migration) compare(ctx context.Context, ns string, before map[string]*unstructured.Unstructured, check func(before, after *unstructured.Unstructured) error) error {
	after, err := y.all(ctx, ns)
	if err != nil {
		return err
	}
	var wrong []error
	for name, o := range after {
		if err := check(before[name], o); err != nil {
			wrong = append(wrong, fmt.Errorf("%s/%s: %w", ns, name, err))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d Deployments are not as they should be, such as %w", len(wrong), len(after), wrong[0])
	}

	return nil
}

func unwritten(before, after *unstructured.Unstructured) error {
	if before.GetResourceVersion() != after.GetResourceVersion() {
		return errors.New("it was written, and nothing should have been")
	}

	return nil
}

// split is about one look: ownership is still as it was seeded.
func split(_, o *unstructured.Unstructured) error {
	s, err := ownership.CheckOwnership(o, disputed, ownership.DefaultManager)
	if err == nil && (!s.ScopeExists || s.FullyOwned) {
		err = fmt.Errorf("ownership of %s is not split: %+v", disputed, s)
	}

	return err
}

func moved(before, after *unstructured.Unstructured) error {
	s, err := ownership.CheckOwnership(after, disputed, ownership.DefaultManager)
	if err != nil {
		return err
	}
	if !s.FullyOwned {
		return fmt.Errorf("%s is not owned by %s alone: %+v", disputed, ownership.DefaultManager, s)
	}
	if !reflect.DeepEqual(contentOf(before), contentOf(after)) {
		return errors.New("its content has changed")
	}

	return nil
}

// removed is about an apply: the item is gone, and everything else still there.
func removed(before, after *unstructured.Unstructured) error {
	path := []string{"spec", "template", "spec", "initContainers"}
	want := before.DeepCopy()
	list, _, err := unstructured.NestedSlice(want.Object, path...)
	if err != nil || len(list) == 0 {
		return errors.Join(errors.New("it had no init containers"), err)
	}
	if err := unstructured.SetNestedSlice(want.Object, list[1:], path...); err != nil {
		return err
	}
	if !reflect.DeepEqual(want.Object["spec"], after.Object["spec"]) {
		return fmt.Errorf("more or less than one init container was removed: it was %v and is %v", before.Object["spec"], after.Object["spec"])
	}

	return nil
}

// contentOf is an object without what is written about writes.
func contentOf(o *unstructured.Unstructured) map[string]any {
	all := maps.Clone(o.Object)
	meta, _ := all["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	delete(meta, "managedFields")
	delete(meta, "resourceVersion")
	all["metadata"] = meta

	return all
}

func deploymentName(i int) string { return fmt.Sprintf("web-%d", i) }

// deployment names one.
func deployment(ns, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	o.SetNamespace(ns)
	o.SetName(name)

	return o
}
