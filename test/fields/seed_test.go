package fields_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
)

// web has two init containers. The first must be deleted.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: a}}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - name: base-os-bash
        image: base:1
        command: [sh]
        imagePullPolicy: Always
        resources: {limits: {cpu: 100m}}
        securityContext: {runAsUser: 1}
      - {name: other, image: other:1}
      containers:
      - {name: web, image: web:1}
`

// wanted is what eno applies, with the first init container and without.
const (
	named = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {initContainers: [{name: base-os-bash, image: "base:2"}]}}}
`
	dropped = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {by: eno}}
`
)

// seed makes the deployment by the other manager, and has eno own the image of
// an init container and nothing else.
func (w *world) seed() *unstructured.Unstructured {
	w.Helper()
	o := w.create(legacy, web)
	const image = `spec.template.spec.initContainers[name=base-os-bash].image`
	var entries fields.Entries
	for _, e := range w.entries(o) {
		for _, path := range fields.FormatPaths(e.Fields) {
			if path == image {
				only, err := fields.ParseFields([]byte(`{"f:spec":{"f:template":{"f:spec":{"f:initContainers":{"k:{\"name\":\"base-os-bash\"}":{"f:image":{}}}}}}}`))
				must(w.T, err)
				e.Fields = e.Fields.Difference(only)
				entries = append(entries, fields.Entry{Manager: eno, Operation: fields.Apply, APIVersion: "apps/v1", Fields: only})
			}
		}
		entries = append(entries, e)
	}
	w.rewrite(o, entries)

	return w.get(o)
}

func TestSeed(t *testing.T) {
	cases := map[string]struct {
		reason  string
		make    func(w *world) *unstructured.Unstructured
		migrate func(w *world, m *ownership.Migrator, o *unstructured.Unstructured) (ownership.Result, error)
	}{
		"ToTheLetter": {
			reason: "eno has the image and nothing else, and one call does it all.",
			make:   (*world).seed,
			migrate: func(w *world, m *ownership.Migrator, _ *unstructured.Unstructured) (ownership.Result, error) {
				return m.Migrate(w.Context(), ownership.Request{Desired: w.object(dropped)})
			},
		},
		"TwoCalls": {
			reason: "Ownership is moved first, and an ordinary apply does the rest.",
			make:   (*world).seed,
			migrate: func(w *world, m *ownership.Migrator, o *unstructured.Unstructured) (ownership.Result, error) {
				result, err := m.MigrateOwnership(w.Context(), o, initContainers)
				must(w.T, err)
				if diff := cmp.Diff(content(o), content(w.get(o))); diff != "" {
					w.Errorf("moving ownership changed the object: -before, +after:\n%s", diff)
				}
				_, err = w.apply(eno, w.object(dropped))

				return result, err
			},
		},
		"ByHistory": {
			reason: "eno has applied the container, which the other manager made.",
			make: func(w *world) *unstructured.Unstructured {
				o := w.create(legacy, web)
				w.mustApply(eno, named)

				return w.get(o)
			},
			migrate: func(w *world, m *ownership.Migrator, _ *unstructured.Unstructured) (ownership.Result, error) {
				return m.Migrate(w.Context(), ownership.Request{Desired: w.object(dropped), Scopes: scopes(initContainers)})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := tc.make(w)
			_, err := w.apply(eno, w.object(dropped), client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.template.spec.initContainers[0].image: Required value") {
				t.Fatalf("%s\nbefore, the server reports %v", tc.reason, err)
			}

			m := ownership.New(w.c, ownership.Options{})
			result, err := tc.migrate(w, m, before)
			must(t, err)
			if !result.Migrated || result.Skipped != "" {
				t.Errorf("%s\nit was not migrated: %q", tc.reason, result.Skipped)
			}

			after := w.get(before)
			want := before.DeepCopy()
			list, _, _ := unstructured.NestedSlice(want.Object, "spec", "template", "spec", "initContainers")
			must(t, unstructured.SetNestedSlice(want.Object, list[1:], "spec", "template", "spec", "initContainers"))
			must(t, unstructured.SetNestedField(want.Object, eno, "metadata", "labels", "by"))
			if diff := cmp.Diff(content(want), content(after)); diff != "" {
				t.Errorf("%s\nmore has changed than the one init container: -want, +got:\n%s", tc.reason, diff)
			}
			w.lostOnlyItem(before, after)

			again, err := m.Migrate(t.Context(), ownership.Request{Desired: w.object(dropped), Scopes: scopes(initContainers)})
			must(t, err)
			if again.Migrated {
				t.Errorf("%s\nit was migrated twice", tc.reason)
			}
			w.unchanged(after)
		})
	}
}

// lostOnlyItem expects the other manager to hold what it held, but for the init
// container that must be deleted.
func (w *world) lostOnlyItem(before, after *unstructured.Unstructured) {
	w.Helper()
	const it, item = legacy + " (Update apps/v1)", initContainers + "[name=base-os-bash]"
	want := w.held(before)[it]
	lost := below(want, item)
	if len(lost) == 0 {
		w.Errorf("%s held nothing of %s", it, item)
	}
	var left []string
	for _, path := range want {
		if len(below([]string{path}, item)) == 0 {
			left = append(left, path)
		}
	}
	if diff := cmp.Diff(left, w.held(after)[it]); diff != "" {
		w.Errorf("%s has lost something for nothing: -want, +got:\n%s", it, diff)
	}
}

// TestSilent is about an item that stays without an error.
func TestSilent(t *testing.T) {
	w := newWorld(t)
	// Both name the same values, so that the other manager keeps them all.
	w.create(legacy, web)
	o := w.mustApply(eno, strings.ReplaceAll(named, "base:2", "base:1"))
	applied, err := w.apply(eno, w.object(dropped), client.DryRunAll)
	must(t, err)
	if diff := cmp.Diff([]string{"base-os-bash", "other"}, names(applied, initContainers)); diff != "" {
		t.Fatalf("before, the item does not stay: -want, +got:\n%s", diff)
	}

	m := ownership.New(w.c, ownership.Options{})
	request := ownership.Request{Desired: w.object(dropped)}
	before := w.get(o)
	p, err := m.Plan(t.Context(), request)
	must(t, err)
	if p.Skip != "" || p.Refused != nil || len(p.Now) != 1 || len(p.Then) != 1 {
		t.Fatalf("the plan is %+v", p)
	}
	const path = "spec.template.spec.initContainers[name=base-os-bash]"
	if got, want := p.Now[0].String(), path+": Kept, because of "+legacy+" (Update apps/v1)"; got != want {
		t.Errorf("now: %s, want %s", got, want)
	}
	if got, want := p.Then[0].String(), path+": Removed"; got != want {
		t.Errorf("then: %s, want %s", got, want)
	}
	w.unchanged(before)

	result := w.migrate(m, request)
	if !result.Migrated || !result.Applied {
		t.Errorf("it reports %+v", result)
	}
	after := w.get(o)
	if diff := cmp.Diff([]string{"other"}, names(after, initContainers)); diff != "" {
		t.Errorf("init containers: -want, +got:\n%s", diff)
	}
	w.lostOnlyItem(before, after)
}

// TestMetrics counts one migration of each sort.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	o := w.seed()
	registry := prometheus.NewPedanticRegistry()
	m := ownership.New(w.c, ownership.Options{Metrics: ownership.NewMetrics(registry)})
	w.migrate(m, ownership.Request{Object: o})
	w.migrate(m, ownership.Request{Object: o, Scopes: scopes("spec.template.spec.volumes")})
	if _, err := m.MigrateOwnership(t.Context(), o, "status"); err == nil {
		t.Error("it moved the status")
	}
	const want = `
# HELP eno_ownership_migrations_total Migrations of field ownership by status (success, failure, skipped).
# TYPE eno_ownership_migrations_total counter
eno_ownership_migrations_total{status="failure"} 1
eno_ownership_migrations_total{status="skipped"} 1
eno_ownership_migrations_total{status="success"} 1
# HELP eno_split_ownership_detected_total How often a migration found another manager in its scope, by kind and by that manager.
# TYPE eno_split_ownership_detected_total counter
eno_split_ownership_detected_total{kind="Deployment",other_manager="Go-http-client"} 1
`
	must(t, testutil.GatherAndCompare(registry, strings.NewReader(want), "eno_ownership_migrations_total", "eno_split_ownership_detected_total"))
}

// TestLastItem removes the only init container that there is.
func TestLastItem(t *testing.T) {
	w := newWorld(t)
	k := workloads["Deployment"]
	const one = `{"name": "bash", "image": "base:1"}`
	o := w.create(legacy, k.text(one))
	w.mustApply(eno, k.around(`{"spec": {"initContainers": [`+one+`]}}`, ""))
	w.migrate(ownership.New(w.c, ownership.Options{}), ownership.Request{Desired: w.object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}`)})
	if got := names(w.get(o), initContainers); len(got) > 0 {
		t.Errorf("init containers are %q", got)
	}
}

func TestCheckOwnership(t *testing.T) {
	w := newWorld(t)
	o := w.seed()
	cases := map[string]struct {
		reason         string
		object         *unstructured.Unstructured
		scope, manager string
		want           ownership.Status
	}{
		"Split": {
			reason: "Two managers have some of it.", object: o, scope: initContainers, manager: eno,
			want: ownership.Status{ScopeExists: true, OtherManagers: []string{legacy}},
		},
		"NoScope": {
			reason: "There are no volumes.", object: o, scope: "spec.template.spec.volumes", manager: eno,
			want: ownership.Status{},
		},
		"Full": {
			reason: "No other manager has it.", object: o, scope: initContainers + "[name=base-os-bash].image", manager: eno,
			want: ownership.Status{ScopeExists: true, FullyOwned: true},
		},
		"OwnUpdates": {
			reason: "What was not applied does not go with an apply.", object: o, scope: "spec.replicas", manager: legacy,
			want: ownership.Status{ScopeExists: true, OtherManagers: []string{legacy}},
		},
		"Untracked": {
			reason: "Without entries no manager has anything.", object: &unstructured.Unstructured{Object: content(o)}, scope: initContainers, manager: eno,
			want: ownership.Status{ScopeExists: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ownership.CheckOwnership(tc.object, tc.scope, tc.manager)
			must(t, err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCheckOwnership(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
