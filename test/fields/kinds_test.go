package fields_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

// A workload is a kind with init containers.
type workload struct {
	apiVersion, kind string
	// spec besides the template, and what the template needs.
	spec, pod string
	// in is where the template is.
	in string
}

var workloads = map[string]workload{
	"Deployment":  {"apps/v1", "Deployment", `"selector": {"matchLabels": {"app": "x"}}, "replicas": 3`, "", "spec"},
	"StatefulSet": {"apps/v1", "StatefulSet", `"selector": {"matchLabels": {"app": "x"}}, "serviceName": "x"`, "", "spec"},
	"DaemonSet":   {"apps/v1", "DaemonSet", `"selector": {"matchLabels": {"app": "x"}}`, "", "spec"},
	"Job":         {"batch/v1", "Job", `"suspend": true`, `"restartPolicy": "Never",`, "spec"},
	"CronJob":     {"batch/v1", "CronJob", `"schedule": "0 0 * * *", "suspend": true`, `"restartPolicy": "Never",`, "spec.jobTemplate.spec"},
}

// text is the workload with these init containers.
func (k workload) text(initContainers string) string {
	return k.around(fmt.Sprintf(`{"metadata": {"labels": {"app": "x"}}, "spec": {%s "initContainers": [%s], "containers": [{"name": "c", "image": "c:1"}]}}`, k.pod, initContainers), k.spec)
}

// around puts a template where it belongs.
func (k workload) around(template, spec string) string {
	inner := fmt.Sprintf(`{"template": %s, %s}`, template, spec)
	if spec == "" {
		inner = fmt.Sprintf(`{"template": %s}`, template)
	}
	if k.kind == "CronJob" {
		inner = fmt.Sprintf(`{"jobTemplate": {"spec": {"template": %s}}, %s}`, template, spec)
		if spec == "" {
			inner = fmt.Sprintf(`{"jobTemplate": {"spec": {"template": %s}}}`, template)
		}
	}

	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": "x"}, "spec": %s}`, k.apiVersion, k.kind, inner)
}

// TestKinds removes an init container of each kind, with the default scope.
func TestKinds(t *testing.T) {
	for name, k := range workloads {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			const bash, injected = `{"name": "bash", "image": "base:1", "command": ["sh"]}`, `{"name": "injected", "image": "mesh:1"}`
			w.create(legacy, k.text(bash+","+injected))
			o := w.mustApply(eno, k.around(`{"spec": {"initContainers": [{"name": "bash", "image": "base:1"}]}}`, ""))
			before := w.get(o)

			// Template fields of a Job are immutable, so there the move is all.
			request := ownership.Request{Desired: w.object(fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": "x"}}`, k.apiVersion, k.kind))}
			if k.kind == "Job" {
				request = ownership.Request{Object: o}
			}
			result := w.migrate(ownership.New(w.c, ownership.Options{}), request)
			if !result.Migrated {
				t.Fatalf("it was skipped: %s", result.Skipped)
			}
			after := w.get(o)
			path := k.in + ".template.spec.initContainers"
			bashPath := path + "[name=bash]"
			want := []string{"injected"}
			if k.kind == "Job" {
				want = []string{"bash", "injected"}
				if got := below(w.held(after)[eno+" (Apply)"], bashPath); len(got) < 4 {
					t.Errorf("eno does not have all of the item, but %q", got)
				}
			}
			if diff := cmp.Diff(want, names(after, path)); diff != "" {
				t.Errorf("init containers: -want, +got:\n%s", diff)
			}
			it := legacy + " (Update " + k.apiVersion + ")"
			if got := below(w.held(after)[it], bashPath); len(got) > 0 {
				t.Errorf("%s still has %q", it, got)
			}
			if got, want := len(w.held(after)[it]), len(w.held(before)[it])-len(below(w.held(before)[it], bashPath)); got != want {
				t.Errorf("%s has %d other fields, want %d", it, got, want)
			}
		})
	}
}

// TestModes is about an item that the applier never named.
func TestModes(t *testing.T) {
	cases := map[string]struct {
		reason string
		mode   fields.Mode
		want   []string
	}{
		"Needed": {reason: "What another manager put there stays.", mode: fields.Needed, want: []string{"injected"}},
		"Whole":  {reason: "With this mode, all fields are taken over.", mode: fields.Whole, want: []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := workloads["Deployment"]
			o := w.create(legacy, k.text(`{"name": "bash", "image": "base:1"}`))
			w.mustApply(eno, k.around(`{"spec": {"initContainers": [{"name": "bash", "image": "base:1"}]}}`, ""))
			w.merge("injector", o, `{spec: {template: {spec: {initContainers: [{name: injected, image: "mesh:1"}]}}}}`)
			scale(w, o, 7)

			result := w.migrate(ownership.New(w.c, ownership.Options{Mode: tc.mode}), ownership.Request{
				Desired: w.object(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}}`), Scopes: scopes(initContainers),
			})
			after := w.get(o)
			if diff := cmp.Diff(tc.want, names(after, initContainers)); diff != "" || !result.Migrated {
				t.Errorf("%s\ninit containers: -want, +got:\n%s", tc.reason, diff)
			}
			replicas, _, _ := unstructured.NestedInt64(after.Object, "spec", "replicas")
			if got := w.held(after)["hpa (Update apps/v1 of /scale)"]; replicas != 7 || len(got) == 0 {
				t.Errorf("%s\nthere are %d replicas, want 7; managers are %q", tc.reason, replicas, managers(w.held(after)))
			}
		})
	}
}

// scale sets the replicas as a horizontal autoscaler does.
func scale(w *world, o *unstructured.Unstructured, n int32) {
	w.Helper()
	s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	must(w.T, w.c.SubResource("scale").Update(w.Context(), o.DeepCopy(), client.WithSubResourceBody(s), client.FieldOwner("hpa")))
}

// TestManyManagers has co-owners of both kinds, and each loses just the item.
func TestManyManagers(t *testing.T) {
	w := newWorld(t)
	o := w.create(legacy, web)
	item := strings.ReplaceAll(named, "base:2", "base:1")
	for _, name := range []string{eno, "flux", "helm"} {
		w.mustApply(name, strings.ReplaceAll(item, "metadata: {name: web}", fmt.Sprintf("metadata: {name: web, annotations: {by-%s: x}}", name)))
	}
	w.merge("node-fetch", o, `{metadata: {labels: {n: f}}, spec: {template: {spec: {initContainers: [{name: base-os-bash, workingDir: /}]}}}}`)
	w.mustApply(eno, strings.ReplaceAll(item, "base:1", "base:1, workingDir: /"))

	result := w.migrate(ownership.New(w.c, ownership.Options{}), ownership.Request{Desired: w.object(dropped)})
	after := w.get(o)
	if diff := cmp.Diff([]string{"other"}, names(after, initContainers)); diff != "" || !result.Migrated {
		t.Errorf("init containers: -want, +got:\n%s", diff)
	}
	held := w.held(after)
	want := []string{legacy + " (Update apps/v1)", "eno (Apply)", "flux (Apply)", "helm (Apply)", "node-fetch (Update apps/v1)"}
	if diff := cmp.Diff(want, managers(held)); diff != "" {
		t.Errorf("managers: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{`metadata.annotations.by-flux`}, held["flux (Apply)"]); diff != "" {
		t.Errorf("flux: -want, +got:\n%s", diff)
	}
}

const things = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.fields.example.com}
spec:
  group: fields.example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - &v
    name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              items:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [id]
                items:
                  type: object
                  required: [id, size]
                  properties: {id: {type: string}, size: {type: integer}, note: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items:
                  type: object
                  required: [port]
                  properties: {port: {type: integer}, protocol: {type: string, default: TCP}, target: {type: string}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              args: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}
              plain: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}
              whole: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              count: {type: integer}
  - {<<: *v, name: v2, storage: false}
`

// things serves a kind with lists of all sorts.
func (w *world) things() {
	w.Helper()
	o := w.object(things)
	o.SetNamespace("")
	_, err := w.apply("crd", o)
	must(w.T, err)
	cluster.Eventually(w.T, "things are served", func() error {
		for _, version := range []string{"v1", "v2"} {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("fields.example.com/" + version)
			list.SetKind("ThingList")
			if err := w.c.List(w.Context(), list, client.InNamespace(w.ns)); err != nil {
				return err
			}
		}
		// Until it knows the schema, the server takes all lists as one.
		probe, err := w.apply("probe", w.object(thing(`tags: [a]`)), client.DryRunAll)
		if err != nil {
			return err
		}
		if got := w.held(probe)["probe (Apply)"]; slices.Contains(got, "spec.tags") {
			return fmt.Errorf("the schema is not there yet: %q", got)
		}

		return nil
	})
}

// thing is one with this spec.
func thing(spec string) string {
	return fmt.Sprintf("apiVersion: fields.example.com/v1\nkind: Thing\nmetadata: {name: x}\nspec: {%s}\n", spec)
}

func TestCustomResources(t *testing.T) {
	cases := map[string]struct {
		reason string
		// made by the other manager, applied by eno before and after.
		made, before, after string
		scope               string
		want                string
	}{
		"ListMap": {
			reason: "An item of a list is removed as one.", scope: "spec.items",
			made: `items: [{id: a, size: 1, note: some}, {id: b, size: 1}], count: 3`, before: `items: [{id: a, size: 1}]`, after: ``,
			want: `items: [{id: b, size: 1}], count: 3`,
		},
		"ListMapNoScope": {
			reason: "All of the spec is in scope, and count still is not eno's.", scope: "spec",
			made: `items: [{id: a, size: 1, note: some}, {id: b, size: 1}], count: 3`, before: `items: [{id: a, size: 1}]`, after: `items: []`,
			want: `items: [{id: b, size: 1}], count: 3`,
		},
		"LastItem": {
			reason: "A list that is left without items is removed too: for the schema, null is not a list.", scope: "spec.items",
			made: `items: [{id: a, size: 1}], count: 3`, before: `items: [{id: a, size: 1}]`, after: ``,
			want: `count: 3`,
		},
		"LastItemOfOne": {
			reason: "It goes too if the other manager has none of its items, but the list.", scope: "spec.items",
			made: `items: [], count: 3`, before: `items: [{id: a, size: 1}]`, after: ``,
			want: `count: 3`,
		},
		"LastKeyOfOne": {
			reason: "So does a map that another manager made, and of which it owns nothing.", scope: "spec.free",
			made: `free: {}, count: 3`, before: `free: {x: {a: 1}}`, after: ``,
			want: `count: 3`,
		},
		"DefaultedKey": {
			reason: "The key that eno leaves out is the server's default.", scope: "spec.ports",
			made: `ports: [{port: 80, target: a}, {port: 80, protocol: UDP, target: b}]`, before: `ports: [{port: 80, target: a}]`, after: ``,
			want: `ports: [{port: 80, protocol: UDP, target: b}]`,
		},
		"Set": {
			reason: "A value of a set that both have stays forever.", scope: "spec.tags",
			made: `tags: [a, b, c]`, before: `tags: [a, b]`, after: `tags: [b]`,
			want: `tags: [b, c]`,
		},
		"Atomic": {
			reason: "An atomic list is held as one.", scope: "spec.args",
			made: `args: [x], count: 1`, before: `args: [x]`, after: ``,
			want: `count: 1`,
		},
		"AtomicLifted": {
			reason: "A scope in an atomic map is that map.", scope: "spec.whole.a",
			made: `whole: {a: x}, count: 1`, before: `whole: {a: x}`, after: ``,
			want: `count: 1`,
		},
		"Plain": {
			reason: "A list of no type is atomic, even if its items have names.", scope: "spec.plain[name=a]",
			made: `plain: [{name: a}, {name: b}], count: 1`, before: `plain: [{name: a}, {name: b}]`, after: ``,
			want: `count: 1`,
		},
		"Unknown": {
			reason: "Fields that no schema knows are held one by one.", scope: "spec.free.x",
			made: `free: {x: {a: 1, b: 2}, y: 1}`, before: `free: {x: {a: 1}}`, after: `free: {}`,
			want: `free: {x: {b: 2}, y: 1}`,
		},
	}
	w := newWorld(t)
	w.things()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.create(legacy, thing(tc.made))
			w.mustApply(eno, thing(tc.before))
			result := w.migrate(ownership.New(w.c, ownership.Options{}), ownership.Request{Desired: w.object(thing(tc.after)), Scopes: scopes(tc.scope)})
			if !result.Migrated {
				t.Errorf("%s\nit was skipped: %s", tc.reason, result.Skipped)
			}
			after := w.get(o)
			want := w.object(thing(tc.want))
			if diff := cmp.Diff(want.Object["spec"], after.Object["spec"]); diff != "" {
				t.Errorf("%s\nspec: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
