package upgrade_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/test/cluster"
)

const (
	name      = "arbor"
	namespace = "arbor-system"
	// quiet is how long nothing is written when a manager has done its work, also on a slow
	// machine.
	quiet = 10 * time.Second
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

// A version is a chart as it was rendered, with the program that it is for.
type version struct {
	title   string
	objects []*unstructured.Unstructured
	// manager is the path of the program. "" is the present one.
	manager string
	// definitions are those of a version whose program is not at hand to install them.
	definitions []*apiextensionsv1.CustomResourceDefinition
}

// from is the version that is upgraded: the kept one of the last release, or the one in
// the folder ARBOR_FROM, which make upgrade-check builds.
func from(t *testing.T) version {
	t.Helper()
	dir := os.Getenv("ARBOR_FROM")
	if dir == "" {
		return version{title: "the last release", objects: read(t, "released/chart/arbor.yaml"), definitions: released(t)}
	}

	return version{title: os.Getenv("ARBOR_FROM_TITLE"), objects: read(t, filepath.Join(dir, "arbor.yaml")), manager: filepath.Join(dir, "arbor-manager")}
}

// present is the version that is upgraded to, with a scope of delivery.
func present(t *testing.T, scope string) version {
	t.Helper()
	args := []string{"template", name, cluster.Chart(), "--namespace", namespace, "--values", "values.yaml", "--set", "delivery.scope=" + scope}
	if scope == "namespace" {
		args = append(args, "--set", "delivery.defaultServiceAccount="+account, "--set", "delivery.rules[0].verbs={list,watch}")
	}
	text, err := server.Helm(t.Context(), args...)
	must(t, err)
	all, err := cluster.Objects(text)
	must(t, err)

	return version{title: "the present one, scope " + scope, objects: all}
}

func read(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	all, err := cluster.Objects(string(data))
	must(t, err)

	return all
}

// start installs a version, as helm upgrade does, and starts its manager as its pod would
// be: with its flags, as its account and with its permissions.
func (v version) start(t *testing.T, c client.Client) *cluster.Manager {
	t.Helper()
	must(t, server.Install(t.Context(), name, namespace, v.objects))
	args := []string{}
	deployment := &appsv1.Deployment{}
	for _, o := range v.objects {
		if o.GetKind() == "Deployment" {
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment))
			args = append(args, deployment.Spec.Template.Spec.Containers[0].Args...)
		}
	}
	kubeconfig, err := server.KubeconfigOf(t.Context(), cluster.Account{Namespace: namespace, Name: deployment.Spec.Template.Spec.ServiceAccountName})
	must(t, err)
	// A process has neither a Service nor a port of its own.
	args = append(args, "--kubeconfig="+kubeconfig, "--webhook-service=", "--metrics-bind-address=0")
	// There is no kubelet, either. Older charts have the flag already.
	args = append(slices.DeleteFunc(args, func(arg string) bool { return arg == "--local-synthesizers" }), "--local-synthesizers")
	if v.definitions != nil {
		for _, crd := range v.definitions {
			must(t, kube.EnsureCRD(t.Context(), c, crd.DeepCopy(), true))
		}
		// The present program needs the present CRDs of pools.
		args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--controllers=") })
		args = append(args, "--crds=check", "--controllers=podgroups,synthesis,delivery")
	}
	if v.manager != "" {
		was := os.Getenv("ARBOR_MANAGER")
		t.Setenv("ARBOR_MANAGER", v.manager)
		defer t.Setenv("ARBOR_MANAGER", was)
	}

	return server.StartManager(t, args...)
}

// Everything that users have stored, and what was made of it, stays as it is when the
// chart and the manager are upgraded, in both scopes of delivery, and when that is taken back; and work
// continues.
func TestUpgrade(t *testing.T) {
	old := from(t)
	c := server.Client(t, nil)
	steps := &table{}
	defer steps.print(t)

	m := old.start(t, c)
	m.MayBeRefused() // the present program may want more than an older chart gives
	kept := newTenant(t, c)
	began := time.Now()
	kept.work(old)
	before := kept.steady() // what comes later would seem to be the upgrade's
	steps.add("installed "+old.title, len(before), 0, time.Since(began))

	for _, v := range []version{present(t, "cluster"), old, present(t, "namespace")} {
		// The next one is ready before this one ends.
		next := v.start(t, c)
		back := v.title == old.title
		if back {
			if refusals := m.Refusals(); len(refusals) > 0 {
				t.Errorf("before the upgrade was taken back, the manager was refused:\n%s", strings.Join(refusals, "\n"))
			}
			next.MayBeRefused()
		}
		m.MayBeRefused() // it has the permissions of the next one for its last moments
		m.Stop()
		m = next
		began := time.Now()
		newTenant(t, c).work(v)
		took := time.Since(began)
		if !back {
			kept.opened()
		}
		after := kept.steady()
		title := "upgraded to " + v.title
		if back {
			title = "taken back to " + v.title
		}
		steps.add(title, len(after), compare(t, title, before, after), took)
		if !back {
			defined(t, c)
		}
	}
}

// defined reports whether the CRDs are the present ones.
func defined(t *testing.T, c client.Client) {
	t.Helper()
	all := &apiextensionsv1.CustomResourceDefinitionList{}
	must(t, c.List(t.Context(), all))
	for i := range all.Items {
		is := &all.Items[i]
		want, ok := crds.ByKind(is.Spec.Group, is.Spec.Names.Kind)
		if !ok {
			continue
		}
		for _, text := range append(broken(want, is), broken(is, want)...) {
			t.Errorf("%s is not the present one: %s", is.Name, text)
		}
	}
}

// A table is what was seen.
type table struct{ rows []string }

func (s *table) add(step string, objects, written int, work time.Duration) {
	s.rows = append(s.rows, fmt.Sprintf("%s\t%d\t%d\t%s", step, objects, written, work.Round(100*time.Millisecond)))
}

func (s *table) print(t *testing.T) {
	t.Helper()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "step\tobjects\twritten to\tnew work took")
	for _, row := range s.rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush()
	t.Logf("\n%s", out.String())
}
