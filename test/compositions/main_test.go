// Package compositions_test tests the delivery commands on a real API server, without a manager.
package compositions_test

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	eno    = "eno"
	legacy = "Go-http-client"
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

// A world is one namespace of the server, and where a person types commands
// about it.
type world struct {
	*testing.T

	// c knows the kinds of Kubernetes, and typed those of the delivery API.
	c, typed client.Client
	ns       string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := server.Client(t, nil)
	must(t, cluster.Define(t.Context(), c, enov1.GroupVersion, enov1.CompositionKind, enov1.ResourceSliceKind, enov1.SynthesizerKind, enov1.SymphonyKind))
	scheme := runtime.NewScheme()
	must(t, enov1.AddToScheme(scheme))
	typed, err := client.New(rest.CopyConfig(server.Config), client.Options{Scheme: scheme})
	must(t, err)

	return &world{T: t, c: c, typed: typed, ns: cluster.Namespace(t, c)}
}

// object reads YAML.
func (w *world) object(text string) *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	must(w.T, err)
	must(w.T, o.UnmarshalJSON(data))
	o.SetNamespace(w.ns)

	return o
}

// manifest is YAML as a slice has it.
func (w *world) manifest(text string) enov1.Manifest {
	w.Helper()
	data, err := w.object(text).MarshalJSON()
	must(w.T, err)

	return enov1.Manifest{Manifest: strings.TrimSpace(string(data))}
}

// slice stores manifests, and returns the synthesis that has them.
func (w *world) slice(name, uuid string, manifests ...enov1.Manifest) *enov1.Synthesis {
	w.Helper()
	s := &enov1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	s.Spec = enov1.ResourceSliceSpec{SynthesisUUID: uuid, Resources: manifests}
	must(w.T, w.typed.Create(w.Context(), s))
	for range manifests {
		s.Status.Resources = append(s.Status.Resources, enov1.ResourceState{Reconciled: true})
	}
	must(w.T, w.typed.Status().Update(w.Context(), s))
	now := metav1.Now()

	return &enov1.Synthesis{UUID: uuid, Initialized: &now, Synthesized: &now, ResourceSlices: []*enov1.ResourceSliceRef{{Name: name}}}
}

// compose stores the composition web with its status.
func (w *world) compose(status enov1.CompositionStatus) *enov1.Composition {
	w.Helper()
	c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "web"}}
	c.Spec.Synthesizer.Name = "synth"
	must(w.T, w.typed.Create(w.Context(), c))
	c.Status = status
	must(w.T, w.typed.Status().Update(w.Context(), c))

	return c
}

// delivery runs a command in a process of its own, and expects it to end with a
// code. Output on stderr comes after that on stdout.
func (w *world) delivery(code int, args ...string) string {
	w.Helper()
	stdout, stderr, got := server.Arbor(w.T, append([]string{"delivery", "-n", w.ns}, args...)...)
	if got != code {
		w.Fatalf("arbor delivery %v ended with %d, want %d:\n%s%s", args, got, code, stdout, stderr)
	}

	return stdout + stderr
}

// says expects texts in what a command wrote.
func (w *world) says(out string, texts ...string) {
	w.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			w.Errorf("it does not contain %q:\n%s", text, out)
		}
	}
}
