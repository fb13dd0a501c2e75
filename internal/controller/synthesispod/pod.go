package synthesispod

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/names"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/executor"
)

const (
	// managedBy is what pods of syntheses have as app.kubernetes.io/managed-by.
	managedBy = "eno"

	// nonRoot is the user that everything runs as.
	nonRoot = 65532

	// executorPath is where the program is in Arbor's image.
	executorPath = "/arbor-executor"

	shared  = "sharedfs"
	folder  = "/eno"
	program = folder + "/executor"
	socket  = folder + "/executor.sock"

	temporary     = "tmp"
	temporaryPath = "/tmp"

	account     = "account"
	accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenLife is the least that Kubernetes gives.
	tokenLife = 10 * 60

	// goodbye is how long containers may take to end.
	goodbye = 2

	// leeway is how much longer than all of its limits a pod may live. The manager ends it
	// before that, unless it is away.
	leeway = 10 * time.Second

	maxLabel = 63
)

// sharedSize is room for the program that is copied, and for what a synthesizer
// writes there.
var sharedSize = resource.MustParse("256Mi")

// temporarySize is how much a program may write to /tmp.
var temporarySize = resource.MustParse("1Gi")

// name is the one that the pod of a synthesis has, in every process that creates it: there cannot
// be two.
func name(composition, uuid string) string {
	cut := composition[:min(len(composition), max(0, maxLabel-1-len(uuid)))]

	return strings.TrimLeft(strings.TrimRight(cut, "-.")+"-"+uuid, "-")
}

// label is a name as the value of a label, which may be shorter than names are.
func label(name string) string {
	if len(name) <= maxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "-" + hex.EncodeToString(sum[:4])

	return strings.TrimRight(name[:maxLabel-len(end)], "-.") + end
}

// build returns the pod of the synthesis in flight of a composition.
//
// It is never restarted: a synthesis that failed reports the error and is tried again by another
// synthesis, with a back-off, and a pod that tried again by itself would hide both.
func build(c *enov1.Composition, s *enov1.Synthesizer, o Options) *corev1.Pod {
	uuid := c.Status.InFlightSynthesis.UUID
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: name(c.Name, uuid),
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            o.ServiceAccount,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			ActiveDeadlineSeconds:         new(seconds(o.PullTimeout + o.Timeout + leeway)),
			TerminationGracePeriodSeconds: new(int64(goodbye)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: new(int64(nonRoot)), RunAsGroup: new(int64(nonRoot)), FSGroup: new(int64(nonRoot)), RunAsNonRoot: new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Affinity:       affinity(s, o),
			Tolerations:    slices.Clone(o.Tolerations),
			Volumes:        volumes(),
			InitContainers: []corev1.Container{installer(o)},
			Containers:     []corev1.Container{executing(c, s, o), publishing(c, s, o)},
		},
	}
	maps.Copy(pod.Labels, o.Labels)
	maps.Copy(pod.Annotations, o.Annotations)
	mark(pod, c, s)

	return pod
}

func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// reservedLabels select Arbor's own pods: a pod that has them could be adopted by the ReplicaSet of
// the manager, receive its requests, or use its NetworkPolicy and PodDisruptionBudget.
var reservedLabels = []string{"app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/name", "pod-template-hash"}

func isReserved(label string) bool { return slices.Contains(reservedLabels, label) }

// ignoredLabels returns the labels that a Synthesizer must not set on its pods.
func ignoredLabels(s *enov1.Synthesizer) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Spec.PodOverrides.Labels)), func(key string) bool { return !isReserved(key) })
}

// mark writes which composition a pod is for. What a Synthesizer adds to that cannot change it.
func mark(pod *corev1.Pod, c *enov1.Composition, s *enov1.Synthesizer) {
	whom := map[string]string{
		enov1.LabelCompositionName:      c.Name,
		enov1.LabelCompositionNamespace: c.Namespace,
		enov1.LabelSynthesizerName:      s.Name,
		enov1.LabelSynthesisUUID:        c.Status.InFlightSynthesis.UUID,
	}
	for key, value := range s.Spec.PodOverrides.Labels {
		if !isReserved(key) {
			pod.Labels[key] = value
		}
	}
	maps.Copy(pod.Annotations, s.Spec.PodOverrides.Annotations)
	for key, value := range whom {
		pod.Labels[key], pod.Annotations[key] = label(value), value
	}
	pod.Labels[names.ManagedByLabel] = managedBy
	pod.Annotations[enov1.AnnotationCompositionUID] = string(c.UID)
	pod.Annotations[enov1.AnnotationSynthesizerImage] = s.Spec.Image
}

// affinity spreads pods over nodes where that is possible, and keeps them on the nodes
// that the options require. Each kind of affinity that the Synthesizer has replaces the
// default; what the options require is required in any case.
func affinity(s *enov1.Synthesizer, o Options) *corev1.Affinity {
	a := &corev1.Affinity{}
	if own := s.Spec.PodOverrides.Affinity; own != nil {
		a = own.DeepCopy()
	}
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = spread()
	}
	if o.NodeAffinity != nil {
		a.NodeAffinity = requiring(a.NodeAffinity, *o.NodeAffinity)
	}

	return a
}

// requiring returns an affinity that requires something else, too. Of several terms, one
// has to match, so each gets the requirement.
func requiring(a *corev1.NodeAffinity, r corev1.NodeSelectorRequirement) *corev1.NodeAffinity {
	if a == nil {
		a = &corev1.NodeAffinity{}
	}
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, *r.DeepCopy())
	}

	return a
}

// spread prefers nodes without other pods of syntheses.
func spread() *corev1.PodAntiAffinity {
	return &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{names.ManagedByLabel: managedBy}},
			},
		}},
	}
}

// volumes are the folder that containers meet in, /tmp of the program, and what the
// publisher alone shows to the API server.
func volumes() []corev1.Volume {
	return []corev1.Volume{
		{Name: shared, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(sharedSize.DeepCopy())},
		}},
		{Name: temporary, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(temporarySize.DeepCopy())},
		}},
		{Name: account, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o440)),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenLife))}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
				}}},
			},
		}}},
	}
}

func installer(o Options) corev1.Container {
	return confined(corev1.Container{
		Name: decide.ContainerInstaller, Image: o.Image, Command: []string{executorPath, "install", program},
		Resources:    *o.HelperResources.DeepCopy(),
		VolumeMounts: []corev1.VolumeMount{{Name: shared, MountPath: folder}},
	})
}

// executing is the container of the synthesizer's image. It has nothing that it
// could show to the API server.
func executing(c *enov1.Composition, s *enov1.Synthesizer, o Options) corev1.Container {
	return confined(corev1.Container{
		Name: decide.ContainerExecutor, Image: s.Spec.Image, Command: []string{program, "serve", "--socket=" + socket},
		Env: environment(c, s, c.Spec.SynthesisEnv), Resources: resources(s.Spec.PodOverrides.Resources, o.Resources),
		VolumeMounts: []corev1.VolumeMount{{Name: shared, MountPath: folder}, {Name: temporary, MountPath: temporaryPath}},
	})
}

// resources are those of a Synthesizer, and the default for each resource that it does not
// name. A default must not contradict it: a request is at most the limit.
func resources(own, fallback corev1.ResourceRequirements) corev1.ResourceRequirements {
	r := *own.DeepCopy()
	named := func(name corev1.ResourceName) bool {
		_, requested := own.Requests[name]
		_, limited := own.Limits[name]

		return requested || limited
	}
	r.Requests = filled(r.Requests, fallback.Requests, named)
	r.Limits = filled(r.Limits, fallback.Limits, named)

	return r
}

// filled adds to a list what another one has, except for what is named elsewhere.
func filled(list, from corev1.ResourceList, named func(corev1.ResourceName) bool) corev1.ResourceList {
	for name, quantity := range from {
		if named(name) {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = quantity.DeepCopy()
	}

	return list
}

// publishing is the container that reads and writes. The environment that a
// composition asks for is not its own: it could lead it to another API server.
func publishing(c *enov1.Composition, s *enov1.Synthesizer, o Options) corev1.Container {
	return confined(corev1.Container{
		Name: decide.ContainerPublisher, Image: o.Image,
		Command: append([]string{executorPath, "publish", "--socket=" + socket, fmt.Sprintf("--timeout=%s", o.Timeout), fmt.Sprintf("--history-limit=%d", o.HistoryLimit)}, restrictions(o.Rules)...),
		Env:     environment(c, s, nil), Resources: *o.HelperResources.DeepCopy(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: shared, MountPath: folder, ReadOnly: true},
			{Name: account, MountPath: accountPath, ReadOnly: true},
		},
	})
}

// restrictions are the flags with which the publisher checks the rules between tenants. An
// executor that does not know them ends with an error.
func restrictions(rules tenancy.Rules) []string {
	if !rules.Scope.Restricts() {
		return nil
	}

	return []string{"--delivery-scope=" + string(rules.Scope), "--input-namespaces=" + strings.Join(rules.InputNamespaces, ",")}
}

// environment is that of a job. Kubernetes would else look for variables in the
// values.
func environment(c *enov1.Composition, s *enov1.Synthesizer, more []enov1.EnvVar) []corev1.EnvVar {
	job := executor.Job{
		Image: s.Spec.Image, Env: more,
		CompositionNamespace: c.Namespace, CompositionName: c.Name, SynthesisUUID: c.Status.InFlightSynthesis.UUID,
	}
	var env []corev1.EnvVar
	for _, e := range job.Environment() {
		env = append(env, corev1.EnvVar{Name: e.Name, Value: strings.ReplaceAll(e.Value, "$", "$$")})
	}

	return env
}

// confined takes from a container what none of them needs. The end of its log is in its status if
// it fails.
func confined(c corev1.Container) corev1.Container {
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	c.SecurityContext = &corev1.SecurityContext{
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem:   new(true),
		AllowPrivilegeEscalation: new(false),
		Privileged:               new(false),
		RunAsNonRoot:             new(true),
		RunAsUser:                new(int64(nonRoot)),
		RunAsGroup:               new(int64(nonRoot)),
	}

	return c
}
