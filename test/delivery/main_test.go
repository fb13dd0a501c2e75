// Package delivery_test tests the delivery of compositions to a real API server, and the correction
// of drift. The tests create the syntheses.
package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	eno   = "eno"
	other = "somebody"
)

var server *cluster.Up

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A world is a namespace with a composition in it.
type world struct {
	testing.TB

	c client.Client
	// objects is of the cluster that is delivered to.
	objects client.Client
	ns      string
	name    types.NamespacedName
	// last are the manifests of the last synthesis.
	last []enov1.Manifest
	// perSlice is how many manifests a slice holds.
	perSlice int
}

// newWorld makes a composition.
func newWorld(t testing.TB) *world {
	t.Helper()
	c := server.Client(t, nil)
	must(t, cluster.Define(t.Context(), c, enov1.GroupVersion, enov1.CompositionKind, enov1.ResourceSliceKind))
	w := &world{TB: t, c: c, objects: c, ns: cluster.Namespace(t, c), perSlice: 100}
	o := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "app", Finalizers: []string{enov1.Finalizer}}}
	must(t, c.Create(t.Context(), o))
	w.name = client.ObjectKeyFromObject(o)
	t.Cleanup(w.release)

	return w
}

// release lets the composition go, or the managers of other tests would go on
// delivering it.
func (w *world) release() {
	c, err := server.NewClient(nil)
	must(w, err)
	o := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: w.name.Name}}
	ctx := context.WithoutCancel(w.Context())
	_ = c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`)))
	_ = c.Delete(ctx, o)
}

// start starts a manager.
func start(t *testing.T, args ...string) *cluster.Manager {
	t.Helper()

	return server.StartManager(t, append([]string{"--controllers=delivery", "--webhooks=false", "--log-format=text", "--log-level=debug"}, args...)...)
}

// manifest reads YAML. What has no namespace gets that of the world, unless it is
// of a kind that has none.
func (w *world) manifest(text string) enov1.Manifest {
	w.Helper()
	o := &unstructured.Unstructured{}
	must(w, yaml.Unmarshal([]byte(text), &o.Object))
	switch o.GetKind() {
	case "Namespace", "CustomResourceDefinition", "ClusterRole":
	default:
		if o.GetNamespace() == "" {
			o.SetNamespace(w.ns)
		}
	}
	data, err := json.Marshal(o.Object)
	must(w, err)

	return enov1.Manifest{Manifest: string(data)}
}

// identity of a manifest.
func identity(m enov1.Manifest) string {
	o := &unstructured.Unstructured{}
	_ = json.Unmarshal([]byte(m.Manifest), &o.Object)

	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// synthesize writes a synthesis: these manifests, and tombstones of those that
// were in the last one.
func (w *world) synthesize(texts ...string) {
	w.Helper()
	var all []enov1.Manifest
	have := map[string]bool{}
	for _, text := range texts {
		m := w.manifest(text)
		all = append(all, m)
		have[identity(m)] = true
	}
	wanted := all
	for _, m := range w.last {
		if !have[identity(m)] {
			all = append(all, enov1.Manifest{Manifest: m.Manifest, Deleted: true})
		}
	}
	w.last = wanted
	w.write(all)
}

// write writes a synthesis as it is.
func (w *world) write(all []enov1.Manifest) {
	w.Helper()
	next := &enov1.Synthesis{UUID: string(uuid.NewUUID()), Synthesized: &metav1.Time{Time: metav1.Now().Time}}
	owner := metav1.NewControllerRef(w.composition(), enov1.GroupVersion.WithKind(enov1.CompositionKind))
	for i := 0; i < len(all); i += w.perSlice {
		s := &enov1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, GenerateName: "app-", OwnerReferences: []metav1.OwnerReference{*owner}},
			Spec:       enov1.ResourceSliceSpec{SynthesisUUID: next.UUID, Resources: all[i:min(i+w.perSlice, len(all))]},
		}
		must(w, w.c.Create(w.Context(), s))
		next.ResourceSlices = append(next.ResourceSlices, &enov1.ResourceSliceRef{Name: s.Name})
	}
	must(w, kube.RetryOnConflict(w.Context(), func(ctx context.Context) error {
		o := &enov1.Composition{}
		must(w, w.c.Get(ctx, w.name, o))
		o.Status.PreviousSynthesis, o.Status.CurrentSynthesis = o.Status.CurrentSynthesis, next

		return w.c.Status().Update(ctx, o)
	}))
}

// remove deletes the composition and, as synthesis does, has delivery delete its objects.
func (w *world) remove() {
	w.Helper()
	must(w, w.c.Delete(w.Context(), w.composition()))
	must(w, kube.RetryOnConflict(w.Context(), func(ctx context.Context) error {
		o := &enov1.Composition{}
		must(w, w.c.Get(ctx, w.name, o))
		o.Status.CurrentSynthesis.ObservedCompositionGeneration = o.Generation
		o.Status.CurrentSynthesis.Reconciled, o.Status.CurrentSynthesis.Ready = nil, nil

		return w.c.Status().Update(ctx, o)
	}))
}

func (w *world) composition() *enov1.Composition {
	w.Helper()
	o := &enov1.Composition{}
	must(w, w.c.Get(w.Context(), w.name, o))

	return o
}

// states are those of the current synthesis, by what they are about.
func (w *world) states() map[string]enov1.ResourceState {
	w.Helper()
	all := map[string]enov1.ResourceState{}
	for _, ref := range w.composition().Status.CurrentSynthesis.ResourceSlices {
		s := &enov1.ResourceSlice{}
		must(w, w.c.Get(w.Context(), types.NamespacedName{Namespace: w.ns, Name: ref.Name}, s))
		for i, m := range s.Spec.Resources {
			state := enov1.ResourceState{}
			if i < len(s.Status.Resources) {
				state = s.Status.Resources[i]
			}
			all[identity(m)] = state
		}
	}

	return all
}

// state is that of one object in the namespace.
func (w *world) state(kind, name string) enov1.ResourceState {
	w.Helper()

	return w.states()[kind+" "+w.ns+"/"+name]
}

// ready waits until all of the current synthesis is there and ready.
func (w *world) ready() {
	w.Helper()
	w.until("everything is ready", func(s enov1.ResourceState) bool {
		return s.Reconciled && s.Ready != nil && s.ReconciliationError == nil
	})
}

// deleted waits until all of the current synthesis is gone.
func (w *world) deleted() {
	w.Helper()
	w.until("everything is deleted", func(s enov1.ResourceState) bool { return s.Deleted })
}

func (w *world) until(what string, holds func(enov1.ResourceState) bool) {
	w.Helper()
	cluster.Eventually(w, what, func() error {
		for name, s := range w.states() {
			if !holds(s) {
				return fmt.Errorf("%s: %s", name, describe(s))
			}
		}

		return nil
	})
}

func describe(s enov1.ResourceState) string {
	text := "no error"
	if s.ReconciliationError != nil {
		text = *s.ReconciliationError
	}

	return fmt.Sprintf("reconciled: %t, ready: %v, deleted: %t, %s", s.Reconciled, s.Ready, s.Deleted, text)
}

// fails waits until an object has an error with some text.
func (w *world) fails(kind, name, says string) {
	w.Helper()
	cluster.Eventually(w, kind+" "+name+" fails: "+says, func() error {
		s := w.state(kind, name)
		if s.ReconciliationError == nil || !strings.Contains(*s.ReconciliationError, says) {
			return errors.New(describe(s))
		}

		return nil
	})
}

// get returns an object, nil if there is none.
func (w *world) get(apiVersion, kind, name string) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	err := w.objects.Get(w.Context(), types.NamespacedName{Namespace: w.ns, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(w, err)

	return o
}

func (w *world) config(name string) *unstructured.Unstructured {
	w.Helper()

	return w.get("v1", "ConfigMap", name)
}

// value is that of a key of a ConfigMap.
func (w *world) value(name, at string) string {
	w.Helper()
	o := w.config(name)
	if o == nil {
		return "(absent)"
	}
	value, _, _ := unstructured.NestedString(o.Object, "data", at)

	return value
}

// eventually waits until a key of a ConfigMap has a value.
func (w *world) eventually(name, at, want string) {
	w.Helper()
	cluster.Eventually(w, name+" has "+want, func() error {
		if got := w.value(name, at); got != want {
			return fmt.Errorf("%s of %s is %q", at, name, got)
		}

		return nil
	})
}

// merge changes an object as another client.
func (w *world) merge(o *unstructured.Unstructured, text string) {
	w.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	must(w, err)
	must(w, w.objects.Patch(w.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, data), client.FieldOwner(other)))
}

// configMap is a manifest with annotations, which are pairs.
func configMap(name, value string, annotations ...string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\ndata: {a: %q}\nmetadata:\n  name: %s\n  annotations:\n    mine: stays\n", value, name)
	for i := 1; i < len(annotations); i += 2 {
		text += fmt.Sprintf("    %s: %q\n", annotations[i-1], annotations[i])
	}

	return text
}
