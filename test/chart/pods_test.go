package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// as reads a rendered object as one of a type.
func as[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	if o == nil {
		t.Fatal("it was not rendered")
	}
	to := new(T)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, to))

	return to
}

// Pull secrets reach every pod that needs an image: those of synthesizers by their
// ServiceAccount, because the manager makes them.
func TestPullSecrets(t *testing.T) {
	made := render(t, only("synthesis", "synthesis.pods.enabled=true", "scheduler.enabled=true", "imagePullSecrets[0].name=pull")...)
	want := []corev1.LocalObjectReference{{Name: "pull"}}
	for _, name := range []string{"arbor-manager", "arbor-scheduler"} {
		if diff := cmp.Diff(want, as[appsv1.Deployment](t, find(made, "Deployment", name)).Spec.Template.Spec.ImagePullSecrets); diff != "" {
			t.Errorf("Deployment %s: %s", name, diff)
		}
	}
	if diff := cmp.Diff(want, as[corev1.ServiceAccount](t, find(made, "ServiceAccount", "arbor-synthesizer")).ImagePullSecrets); diff != "" {
		t.Errorf("the ServiceAccount of synthesizers: %s", diff)
	}
}

// A manager has the time to drain before the kubelet kills it, whatever that time is.
func TestGracePeriod(t *testing.T) {
	for values, want := range map[string]int64{"webhooks.drainSeconds=5": 30, "webhooks.drainSeconds=120": 145} {
		if got := as[appsv1.Deployment](t, find(render(t, values), "Deployment", "arbor-manager")).Spec.Template.Spec.TerminationGracePeriodSeconds; got == nil || *got != want {
			t.Errorf("%s: the grace period is not %d s", values, want)
		}
	}
}

// Both programs are probed every second until they are ready, so that a rollout does not
// wait for the next readiness probe.
func TestStartupProbes(t *testing.T) {
	made := render(t, "scheduler.enabled=true")
	for _, name := range []string{"arbor-manager", "arbor-scheduler"} {
		c := as[appsv1.Deployment](t, find(made, "Deployment", name)).Spec.Template.Spec.Containers[0]
		if c.StartupProbe == nil || c.StartupProbe.PeriodSeconds != 1 || c.StartupProbe.FailureThreshold < 120 {
			t.Fatalf("%s has the startup probe %+v", name, c.StartupProbe)
		}
		if diff := cmp.Diff(c.ReadinessProbe.ProbeHandler, c.StartupProbe.ProbeHandler); diff != "" {
			t.Errorf("%s: when it has started it is not ready: %s", name, diff)
		}
	}
}
