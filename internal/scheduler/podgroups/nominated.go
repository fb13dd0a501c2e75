package podgroups

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
)

// NominatedIn returns which pods are nominated to a node, as their status has it. Those of
// gangs that have reserved their room have the priority of the gang. Those of the gang that
// is being tried are left out.
func NominatedIn(g *Index) func(node string, trying *types.NamespacedName) []fwk.PodInfo {
	return func(node string, trying *types.NamespacedName) []fwk.PodInfo {
		var infos []fwk.PodInfo
		for _, item := range g.Pods.GetStore().List() {
			pod, ok := item.(*corev1.Pod)
			if !ok || pod.Spec.NodeName != "" || pod.Status.NominatedNodeName != node {
				continue
			}
			if key, ok := decide.GroupOf(pod); ok {
				if trying != nil && key == *trying {
					continue
				}
				if pg := g.Group(key); pg != nil && isReserved(pg) {
					pod = podinfo.WithPriority(pod, g.Priority(pg, g.Members(key)))
				}
			}
			infos = append(infos, podinfo.New(pod))
		}

		return infos
	}
}

// isReserved reports whether a PodGroup has the record of a reservation that is about
// its present spec.
func isReserved(pg *v2alpha2.PodGroup) bool {
	r, err := RecordOf(pg)

	return err == nil && r != nil && r.Generation == pg.Generation
}
