// Package eno_test runs synthesis and delivery together on a real control plane,
// against manifests that follow the documentation of Eno.
package eno_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

// flags are those of the manager that all tests share.
var flags = []string{
	"--controllers=synthesis,delivery", "--webhooks=false", "--local-synthesizers", "--rollout-cooldown=0s", "--unreadable-grace=3s", "--log-format=text", "--log-level=debug",
}

var (
	server  *cluster.Up
	manager *cluster.Manager
)

// A suite starts the manager before it runs the tests.
type suite struct{ *testing.M }

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(suite{m}, &server, "--bare", "--nodes=0"))
}

// Run starts the shared manager, runs the tests and stops the manager.
func (s suite) Run() int {
	if err := startManager(); err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}
	code := s.M.Run()
	manager.Stop()
	if refusals := manager.Refusals(); len(refusals) > 0 {
		fmt.Fprintf(os.Stderr, "the chart lacks a permission that the manager needs:\n%s\n", strings.Join(refusals, "\n"))
		code = max(code, 1)
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "--- arbor-manager\n%s\n", manager.Output())
	}

	return code
}

func startManager(more ...string) error {
	m, err := server.Manager(slices.Concat(flags, more)...)
	if err != nil {
		return err
	}
	manager = m

	return m.Await()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// An env is a namespace with compositions. Each has a Synthesizer of its own.
type env struct {
	testing.TB
	client.Client

	namespace string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	c := server.Client(t, nil)
	e := &env{TB: t, Client: c, namespace: cluster.Namespace(t, c)}
	t.Cleanup(e.cleanUp)

	return e
}

// cleanUp removes all compositions without waiting for their objects.
func (e *env) cleanUp() {
	c, err := server.NewClient(nil)
	must(e, err)
	ctx := context.WithoutCancel(e.Context())
	list, programs := &enov1.CompositionList{}, &enov1.SynthesizerList{}
	_ = c.List(ctx, list, client.InNamespace(e.namespace))
	for i := range list.Items {
		_ = c.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = c.Delete(ctx, &list.Items[i])
	}
	_ = c.List(ctx, programs, client.MatchingLabels{"test": e.namespace})
	for i := range programs.Items {
		_ = c.Delete(ctx, &programs.Items[i])
	}
}

// restart kills the manager and starts another one, with further flags.
func (e *env) restart(more ...string) {
	e.Helper()
	manager.Kill()
	must(e, startManager(more...))
}

// restartWith is restart for one test: the next one has a manager without these flags.
func (e *env) restartWith(more ...string) {
	e.Helper()
	e.restart(more...)
	e.Cleanup(func() { e.restart() })
}

// object reads YAML. A namespaced object without namespace gets that of the test.
func (e *env) object(text string) *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{}
	must(e, yaml.Unmarshal([]byte(text), &o.Object))
	switch o.GetKind() {
	case "Namespace", "CustomResourceDefinition", "ClusterRole":
	default:
		if o.GetNamespace() == "" {
			o.SetNamespace(e.namespace)
		}
	}

	return o
}

// output is a ResourceList of manifests.
func (e *env) output(manifests ...string) string {
	e.Helper()
	items := make([]any, 0, len(manifests))
	for _, text := range manifests {
		items = append(items, e.object(text).Object)
	}
	data, err := json.Marshal(map[string]any{"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items})
	must(e, err)

	return string(data)
}

// program creates or changes the Synthesizer of a composition, which prints a text.
func (e *env) program(name, prints string) *enov1.Synthesizer {
	e.Helper()
	o := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: e.namespace + "-" + name}}
	err := e.Get(e.Context(), client.ObjectKeyFromObject(o), o)
	must(e, client.IgnoreNotFound(err))
	o.Labels = map[string]string{"test": e.namespace}
	o.Spec = enov1.SynthesizerSpec{Image: "none", Command: []string{"sh", "-c", `cat > /dev/null; printf %s "$0"`, prints}}
	if err != nil {
		must(e, e.Create(e.Context(), o))
	} else {
		must(e, e.Update(e.Context(), o))
	}

	return o
}

// compose creates a composition of manifests, which a function may change first.
func (e *env) compose(name string, change func(*enov1.Composition), manifests ...string) {
	e.Helper()
	p := e.program(name, e.output(manifests...))
	c := &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name},
		Spec:       enov1.CompositionSpec{Synthesizer: enov1.SynthesizerRef{Name: p.Name}},
	}
	if change != nil {
		change(c)
	}
	must(e, e.Create(e.Context(), c))
}

// dependsOn has a composition depend on other ones of its namespace.
func dependsOn(names ...string) func(*enov1.Composition) {
	return func(c *enov1.Composition) {
		for _, n := range names {
			c.Spec.DependsOn = append(c.Spec.DependsOn, enov1.CompositionDependency{Name: n})
		}
	}
}

// annotated sets an annotation of a composition.
func annotated(name, value string) func(*enov1.Composition) {
	return func(c *enov1.Composition) { c.Annotations = map[string]string{name: value} }
}

// change has the Synthesizer of a composition print other manifests, and waits for
// the synthesis.
func (e *env) change(name string, manifests ...string) {
	e.Helper()
	e.synthesized(name, e.program(name, e.output(manifests...)))
}

// synthesized waits for a synthesis of the Synthesizer as it is.
func (e *env) synthesized(name string, p *enov1.Synthesizer) {
	e.Helper()
	e.await(name, "is synthesized", func(c *enov1.Composition) error {
		if s := c.Status.CurrentSynthesis; s == nil || s.ObservedSynthesizerGeneration != p.Generation {
			return errors.New("the synthesis is not of this generation of the Synthesizer")
		}

		return nil
	})
}

// await waits until a composition meets a condition, and returns it.
func (e *env) await(name, what string, condition func(*enov1.Composition) error) *enov1.Composition {
	e.Helper()
	c := &enov1.Composition{}
	cluster.Eventually(e, name+" "+what, func() error {
		*c = enov1.Composition{}
		if err := e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, c); err != nil {
			return err
		}
		if err := condition(c); err != nil {
			return fmt.Errorf("%w; simplified %+v, current %+v, conditions %+v", err, c.Status.Simplified, c.Status.CurrentSynthesis, c.Status.Conditions)
		}

		return nil
	})

	return c
}

// status waits until status.simplified is a value, with a text in its error.
func (e *env) status(name, status, text string) *enov1.Composition {
	e.Helper()

	return e.await(name, "is "+status, func(c *enov1.Composition) error {
		if s := c.Status.Simplified; s == nil || s.Status != status || !strings.Contains(s.Error, text) {
			return fmt.Errorf("the status is not %s %q", status, text)
		}

		return nil
	})
}

// ready waits until a composition is ready.
func (e *env) ready(name string) *enov1.Composition {
	e.Helper()

	return e.status(name, enov1.StatusReady, "")
}

// remove deletes a composition.
func (e *env) remove(name string) {
	e.Helper()
	must(e, e.Delete(e.Context(), &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}))
}

// gone waits until a composition and all of its slices are gone.
func (e *env) gone(name string) {
	e.Helper()
	cluster.Eventually(e, name+" is gone", func() error {
		c := &enov1.Composition{}
		if err := e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, c); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists: %+v %w", c.Status.Simplified, errors.Join(err))
		}
		list := &enov1.ResourceSliceList{}
		must(e, e.List(e.Context(), list, client.InNamespace(e.namespace)))
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, name+"-") {
				return fmt.Errorf("slice %s exists", list.Items[i].Name)
			}
		}

		return nil
	})
}

// config returns a ConfigMap, nil if there is none.
func (e *env) config(name string) *corev1.ConfigMap {
	e.Helper()
	o := &corev1.ConfigMap{}
	err := e.Get(e.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(e, err)

	return o
}

// exist reports every ConfigMap that does not exist.
func (e *env) exist(names ...string) {
	e.Helper()
	for _, name := range names {
		if e.config(name) == nil {
			e.Errorf("ConfigMap %s does not exist", name)
		}
	}
}

// absent waits until ConfigMaps are gone.
func (e *env) absent(names ...string) {
	e.Helper()
	for _, name := range names {
		cluster.Eventually(e, "ConfigMap "+name+" is gone", func() error {
			if e.config(name) != nil {
				return errors.New("it exists")
			}

			return nil
		})
	}
}

// edit changes a composition.
func (e *env) edit(name string, change func(*enov1.Composition)) {
	e.Helper()
	must(e, kube.RetryOnConflict(e.Context(), func(ctx context.Context) error {
		c := &enov1.Composition{}
		if err := e.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, c); err != nil {
			return err
		}
		change(c)

		return e.Update(ctx, c)
	}))
}

// configMap is a manifest with annotations, which are pairs.
func configMap(name, value string, annotations ...string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\ndata: {a: %q}\nmetadata:\n  name: %s\n  annotations:\n    own: kept\n", value, name)
	for i := 1; i < len(annotations); i += 2 {
		text += fmt.Sprintf("    %s: %q\n", annotations[i-1], annotations[i])
	}

	return text
}
