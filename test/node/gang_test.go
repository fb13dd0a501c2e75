package node_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

// The scheduler of the chart places the pods of a gang together, and none of one that does
// not fit.
func TestGang(t *testing.T) {
	c := server.Client(t, nil)
	where := cluster.Namespace(t, c)
	const size = 3
	gang := func(name string, memory string) {
		least := int32(size)
		group := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: where, Name: name}, Spec: v2alpha2.PodGroupSpec{MinMember: &least}}
		must(t, c.Create(t.Context(), group))
		for n := range size {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: where, Name: fmt.Sprintf("%s-%d", name, n), Annotations: map[string]string{"pod-group-name": name}, Labels: map[string]string{"gang": name},
			}}
			pod.Spec.SchedulerName = "arbor-scheduler"
			pod.Spec.TerminationGracePeriodSeconds = new(int64)
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: testImage, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
			}}}
			must(t, c.Create(t.Context(), pod))
		}
	}
	node := &corev1.Node{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: "node"}, node))
	half := node.Status.Allocatable.Memory().Value() * 45 / 100
	gang("large", strconv.FormatInt(half, 10)) // two of them fit, three do not
	gang("small", "16Mi")
	pods := func(name string) (bound, running int) {
		list := &corev1.PodList{}
		must(t, c.List(t.Context(), list, client.InNamespace(where), client.MatchingLabels{"gang": name}))
		for _, p := range list.Items {
			if p.Spec.NodeName != "" {
				bound++
			}
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}

		return bound, running
	}
	cluster.Eventually(t, "all of the small gang run", func() error {
		if _, running := pods("small"); running != size {
			return fmt.Errorf("%d run", running)
		}

		return nil
	})
	cluster.Eventually(t, "the large gang is rejected", func() error {
		events := &corev1.EventList{}
		must(t, c.List(t.Context(), events, client.InNamespace(where)))
		for _, e := range events.Items {
			if e.Reason == "FailedScheduling" {
				return nil
			}
		}

		return errors.New("there is no event")
	})
	if bound, _ := pods("large"); bound != 0 {
		t.Errorf("%d pods of a gang that does not fit were bound", bound)
	}
}
