package synthesispod

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

const id = "01234567-89ab-cdef-0123-456789abcdef"

func TestNames(t *testing.T) {
	cases := map[string]struct{ reason, given, name, label string }{
		"Short": {"As it is.", "web", "web-" + id, "web"},
		"Cut":   {"No dash before the dash.", strings.Repeat("a", 25) + "-b", strings.Repeat("a", 25) + "-" + id, strings.Repeat("a", 25) + "-b"},
		"Long":  {"A label of its own.", strings.Repeat("abcd.", 30) + "e", "abcd.abcd.abcd.abcd.abcd.a-" + id, "abcd.abcd.abcd.abcd.abcd.abcd.abcd.abcd.abcd.abcd.abcd-"},
	}
	for which, tc := range cases {
		t.Run(which, func(t *testing.T) {
			got := name(tc.given, id)
			if got != tc.name || len(validation.IsDNS1123Subdomain(got)) > 0 || len(got) > 63 {
				t.Errorf("%s\nthe name is %q, want %q", tc.reason, got, tc.name)
			}
			value := label(tc.given)
			if len(validation.IsValidLabelValue(value)) > 0 || !strings.HasPrefix(value, tc.label) || len(tc.given) <= 63 && value != tc.label {
				t.Errorf("%s\nthe label is %q, want %q", tc.reason, value, tc.label)
			}
		})
	}
	long := strings.Repeat("a", 100)
	if label(long) == label(long+"b") {
		t.Error("two names have one label")
	}
}

func given() (*enov1.Composition, *enov1.Synthesizer, Options) {
	c := &enov1.Composition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"},
		Spec: enov1.CompositionSpec{SynthesisEnv: []enov1.EnvVar{
			{Name: "OWN", Value: "$(IMAGE) $$"}, {Name: "IMAGE", Value: "mine"}, {Name: "KUBERNETES_SERVICE_HOST", Value: "evil"},
		}},
		Status: enov1.CompositionStatus{InFlightSynthesis: &enov1.Synthesis{UUID: id}},
	}
	s := &enov1.Synthesizer{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: enov1.SynthesizerSpec{Image: "synth", Command: []string{"run"}}}

	return c, s, Options{Image: "arbor", Namespace: "pods", ServiceAccount: "account", Timeout: 2500 * time.Millisecond, PullTimeout: 5 * time.Minute}
}

// TestBuild has what is in every pod, whatever its Synthesizer is.
func TestBuild(t *testing.T) {
	cases := map[string]struct {
		reason  string
		change  func(*enov1.Synthesizer)
		options func(*Options)
		check   func(*testing.T, *corev1.Pod)
	}{
		"Plain": {
			reason: "A pod like any other.",
			check: func(t *testing.T, p *corev1.Pod) {
				if a := p.Spec.Affinity.PodAntiAffinity; len(a.PreferredDuringSchedulingIgnoredDuringExecution) != 1 || a.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.TopologyKey != "kubernetes.io/hostname" {
					t.Errorf("affinity %+v", a)
				}
			},
		},
		"Overrides": {
			reason: "What a Synthesizer adds is added, and nothing is taken away.",
			change: func(s *enov1.Synthesizer) {
				s.Spec.PodOverrides = enov1.PodOverrides{
					Labels:      map[string]string{"a": "b", enov1.LabelSynthesisUUID: "x", "app.kubernetes.io/managed-by": "x", enov1.LabelCompositionName: "x"},
					Annotations: map[string]string{"a": "b", enov1.AnnotationCompositionUID: "x", enov1.AnnotationSynthesizerImage: "x"},
					Affinity:    &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
				}
			},
			check: func(t *testing.T, p *corev1.Pod) {
				if p.Labels["a"] != "b" || p.Annotations["a"] != "b" || len(p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 0 {
					t.Errorf("labels %v, annotations %v, affinity %v", p.Labels, p.Annotations, p.Spec.Affinity)
				}
			},
		},
		"Reserved": {
			reason: "A pod of a Synthesizer must not be selected as one of the manager's.",
			change: func(s *enov1.Synthesizer) {
				s.Spec.PodOverrides.Labels = map[string]string{"a": "b", "app.kubernetes.io/name": "arbor", "app.kubernetes.io/instance": "arbor", "app.kubernetes.io/component": "manager", "pod-template-hash": "1"}
				want := []string{"app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/name", "pod-template-hash"}
				if diff := cmp.Diff(want, ignoredLabels(s)); diff != "" {
					t.Errorf("reported as ignored: %s", diff)
				}
			},
			options: func(o *Options) { o.Labels = map[string]string{"app.kubernetes.io/name": "synthesizers"} },
			check: func(t *testing.T, p *corev1.Pod) {
				for _, key := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/component", "pod-template-hash"} {
					if value, ok := p.Labels[key]; ok {
						t.Errorf("label %s is %s", key, value)
					}
				}
				if p.Labels["a"] != "b" || p.Labels["app.kubernetes.io/name"] != "synthesizers" {
					t.Errorf("labels %v", p.Labels)
				}
			},
		},
		"Options": {
			reason: "Options are for all pods, and a Synthesizer takes precedence.",
			change: func(s *enov1.Synthesizer) {
				s.Spec.PodOverrides = enov1.PodOverrides{Labels: map[string]string{"a": "own"}, Annotations: map[string]string{"a": "own"}}
			},
			options: func(o *Options) {
				o.Labels = map[string]string{"a": "b", "c": "d", enov1.LabelSynthesisUUID: "x"}
				o.Annotations = map[string]string{"a": "b", "c": "d", enov1.AnnotationCompositionUID: "x"}
				o.Tolerations = []corev1.Toleration{{Key: "pool"}}
			},
			check: func(t *testing.T, p *corev1.Pod) {
				if p.Labels["a"] != "own" || p.Labels["c"] != "d" || p.Annotations["a"] != "own" || p.Annotations["c"] != "d" || len(p.Spec.Tolerations) != 1 {
					t.Errorf("labels %v, annotations %v, tolerations %v", p.Labels, p.Annotations, p.Spec.Tolerations)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, s, o := given()
			if tc.change != nil {
				tc.change(s)
			}
			if tc.options != nil {
				tc.options(&o)
			}
			p := build(c, s, o)
			tc.check(t, p)
			if p.Labels["app.kubernetes.io/managed-by"] != "eno" || p.Labels[enov1.LabelSynthesisUUID] != id || p.Labels[enov1.LabelCompositionName] != "c" ||
				p.Labels[enov1.LabelCompositionNamespace] != "n" || p.Labels[enov1.LabelSynthesizerName] != "s" ||
				p.Annotations[enov1.AnnotationCompositionUID] != "uid" || p.Annotations[enov1.AnnotationSynthesizerImage] != "synth" {
				t.Errorf("%s\nlabels %v, annotations %v", tc.reason, p.Labels, p.Annotations)
			}
			if p.Namespace != "pods" || *p.Spec.ActiveDeadlineSeconds != 313 || p.Spec.RestartPolicy != corev1.RestartPolicyNever || *p.Spec.AutomountServiceAccountToken || p.Spec.ServiceAccountName != "account" {
				t.Errorf("%s\n%+v", tc.reason, p.Spec)
			}
			for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
				sc := container.SecurityContext
				if !*sc.RunAsNonRoot || *sc.RunAsUser != 65532 || *sc.RunAsGroup != 65532 || !*sc.ReadOnlyRootFilesystem || *sc.AllowPrivilegeEscalation || !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) {
					t.Errorf("%s\ncontainer %s has %+v", tc.reason, container.Name, sc)
				}
			}
			if v := p.Spec.Volumes[0].EmptyDir; v.Medium != corev1.StorageMediumMemory || v.SizeLimit.IsZero() {
				t.Errorf("%s\nthe shared volume is %+v", tc.reason, v)
			}
		})
	}
}

// Every container can have resources, so that a quota can be met.
func TestResources(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for pair := range slices.Chunk(pairs, 2) {
			l[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
		}

		return l
	}
	fallback := corev1.ResourceRequirements{Requests: list("cpu", "50m", "memory", "64Mi"), Limits: list("memory", "256Mi")}
	helper := corev1.ResourceRequirements{Requests: list("cpu", "10m"), Limits: list("cpu", "1")}
	cases := map[string]struct {
		reason    string
		own, want corev1.ResourceRequirements
	}{
		"Default": {reason: "A Synthesizer without any has the default.", want: fallback},
		"Own": {
			reason: "A resource that it names has no default: its request could exceed the limit.",
			own:    corev1.ResourceRequirements{Limits: list("memory", "32Mi")},
			want:   corev1.ResourceRequirements{Requests: list("cpu", "50m"), Limits: list("memory", "32Mi")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, s, o := given()
			s.Spec.PodOverrides.Resources = tc.own
			o.Resources, o.HelperResources = fallback, helper
			for _, container := range slices.Concat(build(c, s, o).Spec.InitContainers, build(c, s, o).Spec.Containers) {
				want := helper
				if container.Name == "executor" {
					want = tc.want
				}
				if diff := cmp.Diff(want, container.Resources); diff != "" {
					t.Errorf("%s\ncontainer %s: %s", tc.reason, container.Name, diff)
				}
			}
		})
	}
}

// A program can write to /tmp, which the root file system, being read-only, does not allow.
func TestTemporary(t *testing.T) {
	p := build(given())
	i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "tmp" })
	if i < 0 || p.Spec.Volumes[i].EmptyDir == nil || p.Spec.Volumes[i].EmptyDir.SizeLimit.String() != "1Gi" {
		t.Fatalf("the volumes are %+v", p.Spec.Volumes)
	}
	for _, c := range p.Spec.Containers {
		mounted := slices.Contains(c.VolumeMounts, corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"})
		if mounted != (c.Name == "executor") {
			t.Errorf("container %s mounts %+v", c.Name, c.VolumeMounts)
		}
	}
}

// TestAffinity merges the affinity of a Synthesizer with that of the options.
func TestAffinity(t *testing.T) {
	on := func(key string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
	}
	term := func(keys ...string) corev1.NodeSelectorTerm {
		var term corev1.NodeSelectorTerm
		for _, key := range keys {
			term.MatchExpressions = append(term.MatchExpressions, on(key))
		}

		return term
	}
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.NodeAffinity {
		return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	preferred := []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term("x")}}
	near := &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}
	pool := on("pool")
	cases := map[string]struct {
		reason string
		own    *corev1.Affinity
		flag   *corev1.NodeSelectorRequirement
		want   *corev1.Affinity
	}{
		"None": {"Pods are spread.", nil, nil, &corev1.Affinity{PodAntiAffinity: spread()}},
		"Flag": {"The flag is required.", nil, &pool, &corev1.Affinity{PodAntiAffinity: spread(), NodeAffinity: required(term("pool"))}},
		"Own":  {"Another kind of affinity leaves the default.", &corev1.Affinity{PodAffinity: near}, nil, &corev1.Affinity{PodAntiAffinity: spread(), PodAffinity: near}},
		"Both": {
			"Each alternative has what the flag requires.",
			&corev1.Affinity{NodeAffinity: required(term("a"), term("b"))}, &pool,
			&corev1.Affinity{PodAntiAffinity: spread(), NodeAffinity: required(term("a", "pool"), term("b", "pool"))},
		},
		"Preferred": {
			"A preference stays one.",
			&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}}, &pool,
			&corev1.Affinity{PodAntiAffinity: spread(), NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: preferred, RequiredDuringSchedulingIgnoredDuringExecution: required(term("pool")).RequiredDuringSchedulingIgnoredDuringExecution,
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &enov1.Synthesizer{Spec: enov1.SynthesizerSpec{PodOverrides: enov1.PodOverrides{Affinity: tc.own}}}
			before := tc.own.DeepCopy()
			if diff := cmp.Diff(tc.want, affinity(s, Options{NodeAffinity: tc.flag})); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.own); diff != "" {
				t.Errorf("%s\nThe Synthesizer was changed: %s", tc.reason, diff)
			}
		})
	}
}

// The environment of a composition is that of its program, and of no container that has
// credentials.
func TestEnvironment(t *testing.T) {
	p := build(given())
	names := func(name string) map[string]string {
		i := slices.IndexFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
		env := map[string]string{}
		for _, e := range p.Spec.Containers[i].Env {
			env[e.Name] = e.Value
		}

		return env
	}
	reserved := map[string]string{"COMPOSITION_NAME": "c", "COMPOSITION_NAMESPACE": "n", "SYNTHESIS_UUID": id, "IMAGE": "synth"}
	if diff := cmp.Diff(reserved, names("publisher")); diff != "" {
		t.Errorf("the publisher: -want, +got:\n%s", diff)
	}
	// Kubernetes reads $$ as $, and $(X) as a variable.
	reserved["OWN"], reserved["KUBERNETES_SERVICE_HOST"] = "$$(IMAGE) $$$$", "evil"
	if diff := cmp.Diff(reserved, names("executor")); diff != "" {
		t.Errorf("the executor: -want, +got:\n%s", diff)
	}
}

// TestRestrictions has the publisher check the rules between tenants again.
func TestRestrictions(t *testing.T) {
	cases := map[string]struct {
		reason string
		rules  tenancy.Rules
		want   []string
	}{
		"Cluster":   {reason: "There is nothing to check.", rules: tenancy.Rules{Scope: tenancy.Cluster}},
		"Namespace": {"No other namespace is shared.", tenancy.Rules{Scope: tenancy.Namespace}, []string{"--delivery-scope=namespace", "--input-namespaces="}},
		"Shared":    {"Some are.", tenancy.Rules{Scope: tenancy.Namespace, InputNamespaces: []string{"a", "b"}}, []string{"--delivery-scope=namespace", "--input-namespaces=a,b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, s, o := given()
			o.Rules = tc.rules
			var got []string
			for _, arg := range build(c, s, o).Spec.Containers[1].Command {
				if strings.HasPrefix(arg, "--delivery-scope") || strings.HasPrefix(arg, "--input-namespaces") {
					got = append(got, arg)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}
