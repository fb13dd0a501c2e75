package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

// nominationLog has the node of each nomination.
type nominationLog struct {
	schedulertest.Nominations

	nodes []string
}

func (n *nominationLog) AddNominatedPod(_ klog.Logger, pod fwk.PodInfo, _ *fwk.NominatingInfo) {
	n.nodes = append(n.nodes, pod.GetPod().Status.NominatedNodeName)
}

// Nominations that change while a pod is tried reach the queue.
func TestRenominate(t *testing.T) {
	at := func(node string) *corev1.Pod {
		pod := schedulertest.Pod("p", 0)
		pod.Status.NominatedNodeName = node

		return pod
	}
	bound := at("n1")
	bound.Spec.NodeName = "n1"
	cases := map[string]struct {
		reason string
		states []*corev1.Pod // of the informer, one after the other
		want   []string
	}{
		"Removed": {"The nomination was removed.", []*corev1.Pod{at("")}, []string{""}},
		"Stays":   {"It is the same.", []*corev1.Pod{at("n1")}, []string{"n1"}},
		"Late":    {"It is removed after it was read.", []*corev1.Pod{at("n1"), at("")}, []string{"n1", ""}},
		"Gone":    {"The pod is gone.", []*corev1.Pod{nil}, nil},
		"Bound":   {"The pod was bound.", []*corev1.Pod{bound}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			log := &nominationLog{}
			renominate(klog.Background(), log, at("n1"), func(*corev1.Pod) *corev1.Pod {
				asked++

				return tc.states[min(asked, len(tc.states))-1]
			})
			if diff := cmp.Diff(tc.want, log.nodes); diff != "" {
				t.Errorf("%s\nThe nominations differ (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
