package oracle

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/scheduler/dump"
	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

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
	config, err := dump.Offline(all)
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := Open(t.Context(), config, settings.DefaultOptions(), file)
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
				nodes = append(nodes, schedulertest.Node(i, 8))
			}
			oracle := offline(b, nodes...)
			pg := &v2alpha2.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"},
				Spec:       v2alpha2.PodGroupSpec{MinMember: new(int32(size))},
			}
			var pods []*corev1.Pod
			for i := range size {
				pods = append(pods, schedulertest.Member("g", i, 1))
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
