package schedulertest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// Node is one with GPUs.
func Node(i, gpus int) *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("128"), corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods: resource.MustParse("250"), "nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI),
	}
	name := fmt.Sprintf("node-%04d", i)

	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// Member is a pod of a gang that asks for GPUs.
func Member(group string, i, gpus int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", group, i)

	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Annotations: map[string]string{decide.GroupAnnotation: group},
		},
		Spec: corev1.PodSpec{
			SchedulerName: settings.Name,
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
				Limits:   corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
			}}},
		},
	}
}

// PodGroup is a PodGroup with subgroups. A negative minimum is left out.
func PodGroup(name string, minimum int32, subGroups ...v2alpha2.SubGroup) *v2alpha2.PodGroup {
	pg := &v2alpha2.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v2alpha2.GroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v2alpha2.PodGroupSpec{SubGroups: subGroups},
	}
	if minimum >= 0 {
		pg.Spec.MinMember = &minimum
	}

	return pg
}

// Crew are pods of a subgroup, changed by what comes behind.
func Crew(group, subGroup string, n, gpus int, change ...func(*corev1.Pod)) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range n {
		pod := Member(group, i, gpus)
		if subGroup != "" {
			pod.Name = group + "-" + subGroup + fmt.Sprintf("-%02d", i)
			pod.UID = types.UID(pod.Name)
			pod.Labels = map[string]string{decide.SubGroupLabel: subGroup}
		}
		for _, c := range change {
			c(pod)
		}
		pods = append(pods, pod)
	}

	return pods
}

// OnPort has a pod need port 80 of its node.
func OnPort(pod *corev1.Pod) {
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolTCP}}
}

// BindTo puts the next n pods that have no node on one.
func BindTo(i, n int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Spec.NodeName == "" && n > 0 {
			pod.Spec.NodeName = fmt.Sprintf("node-%04d", i)
			n--
		}
	}
}

// AsObjects are pods as objects.
func AsObjects(pods []*corev1.Pod) []runtime.Object {
	var all []runtime.Object
	for _, p := range pods {
		all = append(all, p)
	}

	return all
}

// Prio gives a pod a priority.
func Prio(value int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Priority = &value }
}

// BoundAt binds pods to a node.
func BoundAt(i int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = fmt.Sprintf("node-%04d", i) }
}

// Group is a PodGroup without subgroups.
func Group(name string, minimum int32, change ...func(*v2alpha2.PodGroup)) *v2alpha2.PodGroup {
	pg := &v2alpha2.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v2alpha2.GroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       v2alpha2.PodGroupSpec{MinMember: &minimum},
	}
	for _, c := range change {
		c(pg)
	}

	return pg
}

// Members are n running pods of a group with one GPU each, all on one node.
func Members(group string, n int, priority int32, change ...func(*corev1.Pod)) []runtime.Object {
	var all []runtime.Object
	for i := range n {
		pod := Member(group, i, 1)
		Prio(priority)(pod)
		pod.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0)) // the last one is the youngest
		BoundAt(0)(pod)
		pod.Status.Phase = corev1.PodRunning
		for _, c := range change {
			c(pod)
		}
		all = append(all, pod)
	}

	return all
}

// Key is the name of a PodGroup in namespace default.
func Key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// KeyInA is the name of a PodGroup in namespace a.
func KeyInA(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "a", Name: name}
}

// Pod is a pod in namespace a.
func Pod(name string, priority int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Priority: &priority},
	}
}

// WaitingPods are the pods of the gang "high", with 4 GPUs each.
func WaitingPods(n int) []runtime.Object {
	var all []runtime.Object
	for i := range n {
		pod := Member("high", i, 4)
		Prio(50)(pod)
		all = append(all, pod)
	}

	return all
}

// AsPods are objects that are pods.
func AsPods(objects []runtime.Object) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, o := range objects {
		if pod, ok := o.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}

	return pods
}

// PodWithVolume is a pod with a PersistentVolumeClaim of its own.
func PodWithVolume(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk-" + string(uid)}},
	}}}}
}

// OnNode binds a pod to a node.
func OnNode(i int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = Node(i, 0).Name }
}

// Using has a pod request an eighth of the CPU and the memory of a node.
func Using(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("16")
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Gi")
}
