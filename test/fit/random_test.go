package fit_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

const (
	namespace = "default"
	caseLabel = "arbor-test/case"
	leafLabel = "arbor-test/leaf"
	gpu       = "nvidia.com/gpu"
)

// A trial is a small cluster of its own, with what runs there already, and a
// gang that wants to. Its pods can be on its own nodes only, so many trials can
// be held at the same time in one control plane.
type trial struct {
	name    string
	nodes   []*corev1.Node
	fillers []*corev1.Pod
	group   *v2alpha2.PodGroup
	pods    []*corev1.Pod
}

// world is what is there before the gang.
func (tr *trial) world() []client.Object {
	var all []client.Object
	for _, n := range tr.nodes {
		all = append(all, n)
	}
	for _, p := range tr.fillers {
		all = append(all, p)
	}

	return all
}

// gang is the group with its pods, by name.
func (tr *trial) gang() []client.Object {
	all := []client.Object{tr.group}
	for _, p := range tr.pods {
		all = append(all, p)
	}

	return all
}

// A maker draws trials.
type maker struct{ *rand.Rand }

func (m maker) chance(percent int) bool { return m.IntN(100) < percent }

// between is a number from low to high.
func (m maker) between(low, high int) int { return low + m.IntN(high-low+1) }

func (m maker) trial(i int) *trial {
	tr := &trial{name: fmt.Sprintf("t%04d", i)}
	for n := range m.between(1, 4) {
		tr.nodes = append(tr.nodes, m.node(tr, n))
	}
	tr.group = &v2alpha2.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v2alpha2.GroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tr.name},
		Spec:       v2alpha2.PodGroupSpec{Queue: "q"},
	}
	if m.chance(35) {
		tr.group.Spec.MinMember = new(int32(m.between(0, 5)))
		m.leaf(tr, "", int(*tr.group.Spec.MinMember))
	} else {
		m.tree(tr)
	}
	slices.SortFunc(tr.pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })

	return tr
}

func (m maker) node(tr *trial, n int) *corev1.Node {
	name := fmt.Sprintf("%s-n%d", tr.name, n)
	cpus, gpus, pods := m.between(3, 16), []int{0, 1, 4, 8, 8}[m.IntN(5)], 110
	if m.chance(10) {
		pods = m.between(1, 6)
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(m.between(8, 64))<<30, resource.BinarySI),
		corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI), gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI),
	}
	// Nobody checks that what is bound at creation has room, so it must.
	for range m.between(0, min(2, pods-1)) {
		filler := m.pod(tr, fmt.Sprintf("%s-f%d", name, len(tr.fillers)), m.between(0, cpus/2), 0)
		filler.Spec.NodeName = name
		if m.chance(20) {
			filler.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
		}
		cpus -= int(filler.Spec.Containers[0].Resources.Requests.Cpu().Value())
		tr.fillers = append(tr.fillers, filler)
	}

	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{caseLabel: tr.name, corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// tree draws subgroups of one or two levels, with all kinds of minimums.
func (m maker) tree(tr *trial) {
	spec := &tr.group.Spec
	tops := m.between(1, 2)
	if m.chance(30) {
		spec.MinSubGroup = new(int32(m.between(0, tops)))
	}
	if m.chance(25) {
		spec.MinMember = new(int32(m.between(0, 6)))
	}
	for t := range tops {
		top := v2alpha2.SubGroup{Name: string(rune('a' + t))}
		children := 0
		if m.chance(40) {
			children = m.between(2, 3)
		}
		if children == 0 {
			top.MinMember = new(int32(m.between(0, 3)))
			spec.SubGroups = append(spec.SubGroups, top)
			m.leaf(tr, top.Name, int(*top.MinMember))

			continue
		}
		if m.chance(50) {
			top.MinSubGroup = new(int32(m.between(0, children)))
		}
		if m.chance(25) {
			top.MinMember = new(int32(m.between(0, 4)))
		}
		spec.SubGroups = append(spec.SubGroups, top)
		for c := range children {
			child := v2alpha2.SubGroup{Name: top.Name + strconv.Itoa(c), Parent: &top.Name, MinMember: new(int32(m.between(0, 2)))}
			spec.SubGroups = append(spec.SubGroups, child)
			m.leaf(tr, child.Name, int(*child.MinMember))
		}
	}
}

// leaf draws the pods of a leaf: enough of them, most often alike.
func (m maker) leaf(tr *trial, leaf string, minimum int) {
	cpus, gpus := m.between(0, 4), []int{0, 0, 0, 1, 1, 2, 4, 9}[m.IntN(8)]
	differ, rule := m.chance(25), m.IntN(100)
	for i := range max(1, minimum) + m.IntN(3) {
		if differ {
			cpus, gpus = m.between(0, 5), m.IntN(3)
		}
		pod := m.pod(tr, fmt.Sprintf("%s-%s%02d", tr.name, leaf, i), cpus, gpus)
		pod.Annotations = map[string]string{v2alpha2.GroupAnnotation: tr.name}
		pod.Labels[leafLabel] = tr.name + leaf
		if leaf != "" {
			pod.Labels[v2alpha2.SubGroupLabel] = leaf
		}
		restrict(pod, rule)
		tr.pods = append(tr.pods, pod)
	}
}

// restrict gives some pods rules of where they may be.
func restrict(pod *corev1.Pod, rule int) {
	own := &metav1.LabelSelector{MatchLabels: map[string]string{leafLabel: pod.Labels[leafLabel]}}
	all := &metav1.LabelSelector{MatchLabels: map[string]string{caseLabel: pod.Labels[caseLabel]}}
	term := func(s *metav1.LabelSelector) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{LabelSelector: s, TopologyKey: corev1.LabelHostname}}
	}
	switch {
	case rule < 10:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(own)}}
	case rule < 15: // away from everybody: also from those who come later and do not mind
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(all)}}
	case rule < 22:
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(own)}}
	case rule < 30:
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	case rule < 38:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own,
		}}
	}
}

func (m maker) pod(tr *trial, name string, cpus, gpus int) *corev1.Pod {
	container := corev1.Container{Name: "c", Image: "registry.example.com/c"}
	container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI)}
	if gpus > 0 {
		// The API server makes a request of it, and so must those who ask first.
		container.Resources.Limits = corev1.ResourceList{gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	}

	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{caseLabel: tr.name}},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{caseLabel: tr.name},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers:                    []corev1.Container{container},
		},
	}
}
