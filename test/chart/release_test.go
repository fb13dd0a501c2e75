package chart_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/internal/controlplane"
	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/cluster/network"
)

// A release is the chart, installed: in a namespace that is called like it, and
// in which only pods may run that need nothing special.
type release struct {
	name  string
	c     client.Client
	late  late
	token string
	args  []string
	// metrics is the address of the manager that was started last.
	metrics string
}

func namespaceObject(name, enforce string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": enforce}}}
}

// install installs the chart. It is gone when the test ends.
func install(t *testing.T, c client.Client, name string, values ...string) *release {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(c.Create(t.Context(), namespaceObject(name, "restricted"))))
	helm(t, slices.Concat([]string{"install", name, cluster.Chart(), "--namespace", name}, cluster.Set(values...))...)
	r := &release{name: name, c: c}
	t.Cleanup(func() {
		_, err := tryHelm(&lasting{t}, "uninstall", name, "--namespace", name, "--ignore-not-found")
		must(t, err)
	})
	r.read(t)
	// Definitions that Helm installs can be used some moments later.
	for _, crd := range definitions(t, c) {
		cluster.Eventually(t, crd.Name+" is served", func() error {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind + "List"})

			return c.List(t.Context(), list, client.Limit(1))
		})
	}

	return r
}

// lasting is a test whose context does not end before its clean-up does.
type lasting struct{ *testing.T }

func (l *lasting) Context() context.Context { return context.WithoutCancel(l.T.Context()) }

// read finds out with which flags and as whom the manager would run.
func (r *release) read(t *testing.T) {
	t.Helper()
	d := &appsv1.Deployment{}
	must(t, r.c.Get(t.Context(), client.ObjectKey{Namespace: r.name, Name: r.name + "-manager"}, d))
	pod := d.Spec.Template.Spec
	r.args = pod.Containers[0].Args
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: pod.ServiceAccountName}}
	r.token = tokenOf(t, account)
	r.late = late{server.NewProxy(t, r.token, 0), t}
}

// start starts the manager as its pod would, with the rendered flags and the
// token of the rendered service account. Only what a process on this machine
// cannot have is different: a Service, and the ports.
func (r *release) start(t *testing.T, args ...string) *cluster.Manager {
	t.Helper()
	ports, err := controlplane.FreePorts(1)
	must(t, err)
	r.metrics = fmt.Sprintf("127.0.0.1:%d", ports[0])

	if slices.ContainsFunc(r.args, func(arg string) bool { return strings.HasPrefix(arg, "--synthesis-timeout=") }) {
		args = append([]string{"--local-synthesizers"}, args...) // there is no kubelet
	}

	return server.StartManager(t, slices.Concat(r.args, []string{
		"--kubeconfig=" + r.late.Kubeconfig, "--webhook-service=", "--metrics-bind-address=" + r.metrics, "--metrics-secure=true", "--log-format=text",
	}, args)...)
}

// A late is the manager's way to the API server, on which events can be held up, as they
// are on any busy cluster.
type late struct {
	*network.Proxy

	t *testing.T
}

// hold keeps events of a kind back, until the returned function is called.
func (l late) hold(kind string) (release func()) {
	return l.Hold(l.t, "^WATCH .*/"+kind+"$")
}

// purge removes CRDs of Arbor's with all objects, whatever holds them, so
// that the next manager has to begin at the beginning.
func purge(t *testing.T, c client.Client) {
	t.Helper()
	for _, crd := range definitions(t, c) {
		must(t, client.IgnoreNotFound(c.Delete(t.Context(), crd)))
		cluster.Eventually(t, crd.Name+" is gone", func() error {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
			list.SetKind(crd.Spec.Names.Kind + "List")
			_ = c.List(t.Context(), list)
			for i := range list.Items {
				_ = c.Patch(t.Context(), &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is still there"), err)
			}

			return nil
		})
	}
}

// definitions are those of Arbor's kinds that there are.
func definitions(t *testing.T, c client.Client) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	must(t, c.List(t.Context(), list))
	var all []*apiextensionsv1.CustomResourceDefinition
	for i := range list.Items {
		if crd := &list.Items[i]; slices.Contains([]string{"scheduling.run.ai", "plexaubnet.io", "eno.azure.io"}, crd.Spec.Group) {
			all = append(all, crd)
		}
	}

	return all
}
