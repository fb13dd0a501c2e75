package delivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {team: a}}
spec:
  replicas: 4
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      initContainers:
      - {name: base-os-bash, image: "base:1", command: [sh], imagePullPolicy: Always}
      containers: [{name: web, image: "web:1"}]
`
	// named is what is delivered: the image of the init container, and no more of
	// it. In dropped it is gone.
	named = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {by: eno}}
spec: {selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {initContainers: [{name: base-os-bash, image: "base:2"}], containers: [{name: web, image: "web:2"}]}}}
`
	dropped = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {by: eno}}
spec: {selector: {matchLabels: {app: NAME}}, template: {metadata: {labels: {app: NAME}}, spec: {containers: [{name: web, image: "web:2"}]}}}
`
)

const workloads = 20

func name(i int) string { return fmt.Sprintf("web-%02d", i) }

// split makes workloads by another client, of which the delivery then takes the
// image of the init container.
func (w *world) split(n int) {
	w.Helper()
	var all []string
	for i := range n {
		o := &unstructured.Unstructured{}
		must(w, json.Unmarshal([]byte(w.manifest(strings.ReplaceAll(deployment, "NAME", name(i))).Manifest), &o.Object))
		must(w, w.objects.Create(w.Context(), o, client.FieldOwner("Go-http-client")))
		all = append(all, strings.ReplaceAll(named, "NAME", name(i)))
	}
	w.synthesize(all...)
	w.ready()
}

func (w *world) drop(n int) {
	w.Helper()
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(dropped, "NAME", name(i)))
	}
	w.synthesize(all...)
}

// inits are the init containers of a workload, and its replicas.
func (w *world) inits(i int) (int, int64) {
	w.Helper()
	o := w.get("apps/v1", "Deployment", name(i))
	list, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "initContainers")
	replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")

	return len(list), replicas
}

// TestSplitOwnership is what brought all this about.
func TestSplitOwnership(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.split(workloads)
	for i := range workloads {
		if n, replicas := w.inits(i); n != 1 || replicas != 4 {
			t.Fatalf("%s has %d init containers and %d replicas before", name(i), n, replicas)
		}
	}
	w.drop(workloads)
	w.ready()
	for i := range workloads {
		if n, replicas := w.inits(i); n != 0 || replicas != 4 {
			t.Errorf("%s has %d init containers and %d replicas", name(i), n, replicas)
		}
	}
	cluster.Eventually(t, "the composition reports what was done", func() error {
		got := w.composition().Status.Ownership
		if got == nil {
			return errors.New("there is no report")
		}
		want := &enov1.OwnershipReport{Migrated: workloads}
		for i := range workloads {
			want.Objects = append(want.Objects, enov1.OwnershipObject{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: w.ns, Name: name(i), State: enov1.OwnershipMigrated,
				Message: "eno owns what Go-http-client had of spec.template.spec.initContainers",
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("-want, +got:\n%s", diff)
		}

		return nil
	})
	cluster.Eventually(t, "an event reports it, of each of them", func() error {
		if n := len(w.events("OwnershipMigrated")); n != workloads {
			return fmt.Errorf("there are %d", n)
		}

		return nil
	})
	if got := m.Sum(t, `eno_ownership_migrations_total{status="success"}`); got != workloads {
		t.Errorf("%v migrations were counted", got)
	}
	// Another client may write in between, and then it is checked again.
	if got := m.Sum(t, "eno_split_ownership_detected_total"); got < workloads {
		t.Errorf("%v split objects were counted", got)
	}
}

// TestDroppedWhileDead has a field dropped by a synthesis that no client delivers: the next
// one finds out what was applied before.
func TestDroppedWhileDead(t *testing.T) {
	w := newWorld(t)
	m := start(t)
	w.split(2)
	w.remembered()
	m.Kill()
	w.drop(2)
	w.history()
	w.drop(2)
	start(t)
	w.ready()
	for i := range 2 {
		if n, replicas := w.inits(i); n != 0 || replicas != 4 {
			t.Errorf("%s has %d init containers and %d replicas", name(i), n, replicas)
		}
	}
}

// TestSplitOwnershipReported has it only reported: the server does not allow to leave a container
// without an image, and nothing is changed.
func TestSplitOwnershipReported(t *testing.T) {
	w := newWorld(t)
	m := start(t, "--ownership-migration=report")
	w.split(1)
	w.drop(1)
	w.fails("Deployment", name(0), "Required value")
	if n, replicas := w.inits(0); n != 1 || replicas != 4 {
		t.Errorf("there are %d init containers and %d replicas", n, replicas)
	}
	cluster.Eventually(t, "the composition reports it", func() error {
		got := w.composition().Status.Ownership
		if got == nil || got.Split != 1 || !strings.Contains(got.Objects[0].Message, "Go-http-client") {
			return fmt.Errorf("%+v", got)
		}

		return nil
	})
	w.event("OwnershipSplit", corev1.EventTypeWarning, "Go-http-client hold parts of spec.template.spec.initContainers")
	if got := m.Sum(t, `eno_split_ownership_detected_total{kind="Deployment",other_manager="Go-http-client"}`); got < 1 {
		t.Errorf("%v split objects were counted", got)
	}
	if got := m.Sum(t, "eno_ownership_migrations_total"); got != 0 {
		t.Errorf("%v migrations were counted, and none was made", got)
	}
}

// TestSplitOwnershipOff is as it was before.
func TestSplitOwnershipOff(t *testing.T) {
	w := newWorld(t)
	start(t, "--ownership-migration=off")
	w.split(1)
	w.drop(1)
	w.fails("Deployment", name(0), "Required value")
	if got := w.composition().Status.Ownership; got != nil {
		t.Errorf("no client asked for a report: %+v", got)
	}
}
