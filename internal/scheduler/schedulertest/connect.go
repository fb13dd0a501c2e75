package schedulertest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/arbor-control/arbor/internal/scheduler/dump"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// Connect returns clients of a cluster that consists of objects.
func Connect(t testing.TB, objects ...runtime.Object) (*rest.Config, clientset.Interface, informers.SharedInformerFactory) {
	t.Helper()
	var all []unstructured.Unstructured
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, unstructured.Unstructured{Object: content})
	}
	source, err := dump.Offline(all)
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientset.NewForConfig(source)
	if err != nil {
		t.Fatal(err)
	}

	return source, client, kubescheduler.NewInformerFactory(client, 0)
}

// SyncInformers starts informers and waits until they have read everything.
func SyncInformers(t testing.TB, factory informers.SharedInformerFactory) {
	t.Helper()
	factory.Start(t.Context().Done())
	for kind, ok := range factory.WaitForCacheSync(t.Context().Done()) {
		if !ok {
			t.Fatalf("%s cannot be read", kind)
		}
	}
}

// DefaultProfiles returns the configuration without a file.
func DefaultProfiles(t testing.TB) *config.KubeSchedulerConfiguration {
	t.Helper()
	cfg, err := profiles.Load(t.Context(), settings.DefaultOptions().Names, "")
	if err != nil {
		t.Fatal(err)
	}

	return cfg
}

// PluginsWith returns the plugins that the profiles name. Only packing does anything.
func PluginsWith(packing frameworkruntime.PluginFactory) frameworkruntime.Registry {
	return frameworkruntime.Registry{profiles.Gang: newIdle(profiles.Gang), profiles.Preemption: newIdle(profiles.Preemption), profiles.Packing: packing}
}

// idle is a plugin for trials, which neither have a queue nor preempt.
type idle struct {
	fwk.QueueSortPlugin
	fwk.PreEnqueuePlugin
	fwk.PostFilterPlugin

	name string
}

func newIdle(name string) frameworkruntime.PluginFactory {
	return func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return idle{name: name}, nil }
}

// Name returns the name of the plugin.
func (i idle) Name() string { return i.name }
