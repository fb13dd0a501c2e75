package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/arbor-control/arbor/test/cluster"
)

// components are the Deployments of the chart, with the prefix of their values.
var components = map[string]string{"arbor-manager": "", "arbor-scheduler": "scheduler."}

// rendered reads a rendered object.
func rendered[T any](t *testing.T, made []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	o := find(made, kind, name)
	if o == nil {
		t.Fatalf("there is no %s %s", kind, name)
	}
	typed := new(T)
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed))

	return typed
}

// OpenShift assigns users and groups itself, and rejects pods that set other values.
func TestSecurityContext(t *testing.T) {
	for name := range components {
		t.Run(name, func(t *testing.T) {
			pod := rendered[appsv1.Deployment](t, render(t, gangs()...), "Deployment", name).Spec.Template.Spec
			want := &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
			if diff := cmp.Diff(want, pod.SecurityContext); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			inner := &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
			if diff := cmp.Diff(inner, pod.Containers[0].SecurityContext); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}

			assigned := gangs("podSecurityContext.runAsUser=null", "podSecurityContext.runAsGroup=null", "podSecurityContext.fsGroup=null", "securityContext.readOnlyRootFilesystem=false")
			pod = rendered[appsv1.Deployment](t, render(t, assigned...), "Deployment", name).Spec.Template.Spec
			want.RunAsUser, want.RunAsGroup, want.FSGroup = nil, nil, nil
			if diff := cmp.Diff(want, pod.SecurityContext); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := pod.Containers[0].SecurityContext; *got.ReadOnlyRootFilesystem || *got.AllowPrivilegeEscalation {
				t.Errorf("the container has %v", got)
			}
		})
	}
}

// Go's heap has to stay below the limit of the container, so the program must know it.
func TestMemoryLimit(t *testing.T) {
	for name, prefix := range components {
		t.Run(name, func(t *testing.T) {
			env := rendered[appsv1.Deployment](t, render(t, gangs()...), "Deployment", name).Spec.Template.Spec.Containers[0].Env
			want := []corev1.EnvVar{{Name: "ARBOR_MEMORY_LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}}}}
			if diff := cmp.Diff(want, env); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// Kubernetes would report the memory of the node instead.
			env = rendered[appsv1.Deployment](t, render(t, gangs(prefix+"resources.limits=null")...), "Deployment", name).Spec.Template.Spec.Containers[0].Env
			if len(env) > 0 {
				t.Errorf("without a limit it has %v", env)
			}
		})
	}
}

// What the user adds is added, and nothing of the chart's own is lost.
func TestExtras(t *testing.T) {
	for name, prefix := range components {
		t.Run(name, func(t *testing.T) {
			d := rendered[appsv1.Deployment](t, render(t, gangs(
				prefix+"extraEnv[0].name=HTTPS_PROXY", prefix+"extraEnv[0].value=http://proxy:3128",
				prefix+"extraVolumes[0].name=trust", prefix+"extraVolumes[0].configMap.name=trust",
				prefix+"extraVolumeMounts[0].name=trust", prefix+"extraVolumeMounts[0].mountPath=/etc/ssl/certs",
				prefix+"podLabels.team=a", prefix+"podAnnotations.note=b",
				prefix+"topologySpreadConstraints[0].maxSkew=2", prefix+"topologySpreadConstraints[0].topologyKey=zone", prefix+"topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
				"scheduler.config=kind: KubeSchedulerConfiguration", "webhooks.certificates=cert-manager",
			)...), "Deployment", name).Spec.Template
			c := d.Spec.Containers[0]
			if len(c.Env) != 2 || c.Env[1] != (corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}) {
				t.Errorf("the environment is %v", c.Env)
			}
			if len(c.VolumeMounts) != 2 || c.VolumeMounts[1] != (corev1.VolumeMount{Name: "trust", MountPath: "/etc/ssl/certs"}) {
				t.Errorf("the mounts are %v", c.VolumeMounts)
			}
			if len(d.Spec.Volumes) != 2 || d.Spec.Volumes[1].ConfigMap == nil || d.Spec.Volumes[1].ConfigMap.Name != "trust" {
				t.Errorf("the volumes are %v", d.Spec.Volumes)
			}
			if d.Labels["team"] != "a" || d.Labels["app.kubernetes.io/name"] != "arbor" || d.Annotations["note"] != "b" || d.Annotations["kubectl.kubernetes.io/default-container"] == "" {
				t.Errorf("labels %v, annotations %v", d.Labels, d.Annotations)
			}
			if s := d.Spec.TopologySpreadConstraints; len(s) != 1 || s[0].TopologyKey != "zone" {
				t.Errorf("the pods are spread by %v", s)
			}
		})
	}
}

// A rollout does not wait for replicas that cannot become ready, a drain of a node does not
// either, and a program that reads a large cluster is not killed before it has.
func TestRollouts(t *testing.T) {
	made := render(t, gangs()...)
	for name := range components {
		budget := rendered[policyv1.PodDisruptionBudget](t, made, "PodDisruptionBudget", name)
		if p := budget.Spec.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
			t.Errorf("%s: the eviction policy of its budget is %v", name, p)
		}
		c := rendered[appsv1.Deployment](t, made, "Deployment", name).Spec.Template.Spec.Containers[0]
		p := c.StartupProbe
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != "/readyz" || p.PeriodSeconds*p.FailureThreshold < 300 {
			t.Errorf("%s: the startup probe is %v", name, p)
		}
		if c.ReadinessProbe == nil || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe == nil {
			t.Errorf("%s: the probes are %v and %v", name, c.ReadinessProbe, c.LivenessProbe)
		}
	}
}

// The scheduler waits forever for kinds that an older API server does not serve.
func TestSchedulerVersion(t *testing.T) {
	template := slices.Concat([]string{"template", "arbor", cluster.Chart()}, cluster.Set(gangs()...))
	for version, want := range map[string]string{
		"v1.36.0": "", "v1.36.2-gke.1200": "", "v1.37.1": "", "v1.36.0-alpha.1": "",
		"v1.35.9": "scheduler.enabled: the scheduler needs Kubernetes 1.36 or later, and the cluster has v1.35.9",
	} {
		_, err := tryHelm(t, append(template, "--kube-version="+version)...)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: %v, want %q", version, err, want)
		}
	}
	// Without the scheduler, older ones will do.
	_, err := tryHelm(t, slices.Concat([]string{"template", "arbor", cluster.Chart(), "--kube-version=v1.30.0"}, cluster.Set())...)
	must(t, err)
}
