package placement

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// Rooms looks at every node with the eyes of one pod. Those come first that
// lack the least.
func (t *Trial) Rooms(ctx context.Context, g *decide.Gang, member int) ([]decide.Room, error) {
	fw, err := t.profile(g)
	if err != nil {
		return nil, err
	}
	pod := g.Pods[member]
	if err := t.Cache.UpdateSnapshot(klog.FromContext(ctx), t.Snapshot); err != nil {
		return nil, err
	}
	nodes, err := t.Snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	narrowed, status, _ := fw.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	rooms := make([]decide.Room, 0, len(nodes))
	for _, node := range nodes {
		r := decide.Room{Node: node.Node().Name}
		switch {
		case status.IsRejected():
			r.Reasons = status.Reasons()
		case !narrowed.AllNodes() && !narrowed.NodeNames.Has(r.Node):
			r.Reasons = []string{reasonUnselected}
		default:
			look(ctx, fw, state, pod, node, &r)
		}
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b decide.Room) int {
		return cmp.Or(cmp.Compare(b.Fits, a.Fits), cmp.Compare(len(a.Reasons), len(b.Reasons)), cmp.Compare(missing(a), missing(b)), cmp.Compare(a.Node, b.Node))
	})

	return rooms, nil
}

// look fills in one node.
func look(ctx context.Context, fw framework.Framework, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, r *decide.Room) {
	insufficient := map[string]bool{}
	for _, lack := range noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true}) {
		insufficient[lack.Reason] = true
		r.Short = append(r.Short, decide.Shortage{Resource: string(lack.ResourceName), Asked: lack.Requested, Free: lack.Capacity - lack.Used, Allocatable: lack.Capacity})
	}
	if status := fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, node); !status.IsSuccess() {
		for _, reason := range status.Reasons() {
			if !insufficient[reason] {
				r.Reasons = append(r.Reasons, reason)
			}
		}

		return
	}
	r.Fits = times(pod, node)
}

// times is how often a pod fits a node that takes it, by its resources.
func times(pod *corev1.Pod, node fwk.NodeInfo) int {
	room := node.GetAllocatable().GetAllowedPodNumber() - len(node.GetPods())
	asked := framework.NewResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	free := func(ask, allocatable, used int64) {
		if ask > 0 {
			room = min(room, int((allocatable-used)/ask))
		}
	}
	has, used := node.GetAllocatable(), node.GetRequested()
	free(asked.MilliCPU, has.GetMilliCPU(), used.GetMilliCPU())
	free(asked.Memory, has.GetMemory(), used.GetMemory())
	free(asked.EphemeralStorage, has.GetEphemeralStorage(), used.GetEphemeralStorage())
	for name, ask := range asked.ScalarResources {
		free(ask, has.GetScalarResources()[name], used.GetScalarResources()[name])
	}

	return max(0, room)
}

// missing is how much a node lacks, as a share of what is asked for.
func missing(r decide.Room) float64 {
	total := 0.0
	for _, s := range r.Short {
		total += 1 - float64(max(0, s.Free))/float64(max(1, s.Asked))
	}

	return total
}
