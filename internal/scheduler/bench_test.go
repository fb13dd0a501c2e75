package scheduler

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// node is one with GPUs.
func node(i, gpus int) *corev1.Node {
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

// member is a pod of a gang that asks for GPUs.
func member(group string, i, gpus int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", group, i)

	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Annotations: map[string]string{decide.GroupAnnotation: group},
		},
		Spec: corev1.PodSpec{
			SchedulerName: Name,
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
				Limits:   corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
			}}},
		},
	}
}

func offline(t testing.TB, objects ...runtime.Object) *Oracle {
	t.Helper()

	return offlineWith(t, "", objects...)
}

// offlineWith has a configuration file of kube-scheduler's, unless it is empty.
func offlineWith(t testing.TB, file string, objects ...runtime.Object) *Oracle {
	t.Helper()
	var all []unstructured.Unstructured
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, unstructured.Unstructured{Object: content})
	}
	config, err := Offline(all)
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := Open(t.Context(), config, DefaultOptions(), file)
	if err != nil {
		t.Fatal(err)
	}

	return oracle
}

func BenchmarkFit(b *testing.B) {
	for _, size := range []int{10, 100, 500} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			var nodes []runtime.Object
			for i := range 500 {
				nodes = append(nodes, node(i, 8))
			}
			oracle := offline(b, nodes...)
			pg := &v2alpha2.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"},
				Spec:       v2alpha2.PodGroupSpec{MinMember: new(int32(size))},
			}
			var pods []*corev1.Pod
			for i := range size {
				pods = append(pods, member("g", i, 1))
			}
			for b.Loop() {
				answer, err := oracle.Fit(b.Context(), pg, pods)
				if err != nil || !answer.Decision.Fits {
					b.Fatal(answer, err)
				}
			}
		})
	}
}
