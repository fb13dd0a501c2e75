// Package fields_test tests migrations of field ownership on a real API server.
package fields_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	eno    = "eno"
	legacy = "Go-http-client"

	initContainers = "spec.template.spec.initContainers"
)

var server *cluster.Up

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A world is one namespace of the server.
type world struct {
	*testing.T

	c  client.Client
	ns string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := server.Client(t, nil)

	quiet(t, c)

	return &world{T: t, c: c, ns: cluster.Namespace(t, c)}
}

// object reads YAML.
func (w *world) object(text string) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	must(w.T, yaml.Unmarshal([]byte(text), &o.Object))
	data, err := json.Marshal(o.Object)
	must(w.T, err)
	must(w.T, o.UnmarshalJSON(data)) // numbers as the client reads them
	o.SetNamespace(w.ns)

	return o
}

// create creates an object by a manager that does not apply.
func (w *world) create(manager, text string) *unstructured.Unstructured {
	w.Helper()
	o := w.object(text)
	must(w.T, w.c.Create(w.Context(), o, client.FieldOwner(manager)))

	return o
}

// apply applies by force.
func (w *world) apply(manager string, o *unstructured.Unstructured, more ...client.ApplyOption) (*unstructured.Unstructured, error) {
	w.Helper()
	o = o.DeepCopy()
	err := w.c.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(o), append([]client.ApplyOption{client.FieldOwner(manager), client.ForceOwnership}, more...)...)

	return o, err
}

func (w *world) mustApply(manager, text string) *unstructured.Unstructured {
	w.Helper()
	o, err := w.apply(manager, w.object(text))
	must(w.T, err)

	return o
}

// merge writes a part of an object by a manager that does not apply.
func (w *world) merge(manager string, o *unstructured.Unstructured, text string) {
	w.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	must(w.T, err)
	kind := types.MergePatchType
	if o.GroupVersionKind().Group == "apps" {
		kind = types.StrategicMergePatchType
	}
	must(w.T, w.c.Patch(w.Context(), o.DeepCopy(), client.RawPatch(kind, data), client.FieldOwner(manager)))
}

// rewrite sets the managed fields of an object to what a test needs.
func (w *world) rewrite(o *unstructured.Unstructured, entries any) {
	w.Helper()
	data, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": entries}})
	must(w.T, err)
	must(w.T, w.c.Patch(w.Context(), o.DeepCopy(), client.RawPatch(types.JSONPatchType, data)))
}

func (w *world) get(o *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	live := o.DeepCopy()
	must(w.T, w.c.Get(w.Context(), client.ObjectKeyFromObject(o), live))

	return live
}

// held is what each entry of an object holds: paths by identity.
func (w *world) held(o *unstructured.Unstructured) map[string][]string {
	w.Helper()
	all := map[string][]string{}
	for _, e := range w.entries(o) {
		all[e.Identity().String()] = fields.FormatPaths(e.Fields)
	}

	return all
}

func (w *world) entries(o *unstructured.Unstructured) fields.Entries {
	w.Helper()
	es, err := fields.Read(o.Object)
	must(w.T, err)

	return es
}

// migrate migrates and expects it to work.
func (w *world) migrate(m *ownership.Migrator, r ownership.Request) ownership.Result {
	w.Helper()
	result, err := m.Migrate(w.Context(), r)
	must(w.T, err)

	return result
}

// unchanged expects an object not to have been written since.
func (w *world) unchanged(before *unstructured.Unstructured) {
	w.Helper()
	if now := w.get(before); now.GetResourceVersion() != before.GetResourceVersion() {
		w.Errorf("it was written:\n%s", cmp.Diff(before.Object, now.Object))
	}
}

// names are those of the items of a list.
func names(o *unstructured.Unstructured, path string) []string {
	list, _, _ := unstructured.NestedSlice(o.Object, strings.Split(path, ".")...)
	all := []string{}
	for _, item := range list {
		all = append(all, item.(map[string]any)["name"].(string))
	}

	return all
}

// content is what an object reports, without what the server reports about writes.
func content(o *unstructured.Unstructured) map[string]any {
	all := o.DeepCopy().Object
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(all, "metadata", name)
	}

	return all
}

// below are the paths that begin in one of these ways.
func below(paths []string, prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(p, prefix) })
	})
}

// managers of an object.
func managers(held map[string][]string) []string { return slices.Sorted(maps.Keys(held)) }

func scopes(texts ...string) []fields.Scope {
	var all []fields.Scope
	for _, text := range texts {
		all = append(all, fields.MustParseScope(text))
	}

	return all
}

// A spy is a client that reports its requests and lets tests do something first.
type spy struct {
	client.Client

	mu    sync.Mutex
	calls []string
	// before is called with each call, if it is there. An error is the answer.
	before func(call string) error
	// after is called after each call. An error is what becomes of the answer.
	after func(call string) error
	// blind leaves managed fields out of what is read.
	blind bool
}

// do makes a call.
func (s *spy) do(call string, it func() error) error {
	s.mu.Lock()
	s.calls = append(s.calls, call)
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(call); err != nil {
			return err
		}
	}
	err := it()
	if after != nil {
		if lost := after(call); lost != nil {
			return lost
		}
	}

	return err
}

func (s *spy) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := s.do("get", func() error { return s.Client.Get(ctx, key, o, opts...) })
	if err == nil && s.blind {
		o.SetManagedFields(nil)
	}

	return err
}

func (s *spy) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return s.do("patch"+dry((&client.PatchOptions{}).ApplyOptions(opts).DryRun), func() error { return s.Client.Patch(ctx, o, p, opts...) })
}

func (s *spy) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	all := (&client.ApplyOptions{}).ApplyOptions(opts)

	return s.do("apply as "+all.FieldManager+dry(all.DryRun), func() error { return s.Client.Apply(ctx, o, opts...) })
}

func dry(run []string) string {
	if slices.Contains(run, metav1.DryRunAll) {
		return " (dry)"
	}

	return ""
}
