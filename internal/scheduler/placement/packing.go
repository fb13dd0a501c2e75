package placement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/arbor-control/arbor/internal/scheduler/profiles"
)

const (
	// packingState is the key under which PreScore keeps what a pod requests.
	packingState = "PreScore" + profiles.Packing

	gpu corev1.ResourceName = "nvidia.com/gpu"
)

// packing prefers nodes whose GPUs are in use, for pods that request GPUs, so that
// whole nodes stay free for gangs that need them. It does for GPUs what
// NodeResourcesFit does with the strategy MostAllocated. That plugin has one strategy
// for all resources, and for pods without GPUs it must remain LeastAllocated, which
// spreads them.
type packing struct{}

var (
	_ fwk.PreScorePlugin = packing{}
	_ fwk.ScorePlugin    = packing{}
	_ fwk.SignPlugin     = packing{}
)

// NewPacking makes the plugin that prefers nodes whose GPUs are in use.
func NewPacking(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return packing{}, nil
}

// Name returns the name of the plugin.
func (packing) Name() string { return profiles.Packing }

// requestedGPUs is what a pod requests.
type requestedGPUs int64

// Clone returns the number, which never changes.
func (n requestedGPUs) Clone() fwk.StateData { return n }

func gpusOf(pod *corev1.Pod) requestedGPUs {
	quantity := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[gpu]

	return requestedGPUs(quantity.Value())
}

// PreScore skips pods that request no GPU.
func (packing) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	n := gpusOf(pod)
	if n == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(packingState, n)

	return nil
}

// Score is the share of the node's GPUs that are in use with the pod on it.
func (packing) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	kept, err := state.Read(packingState)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	n, _ := kept.(requestedGPUs)
	all := node.GetAllocatable().GetScalarResources()[gpu]
	if all == 0 {
		return 0, nil
	}
	used := node.GetRequested().GetScalarResources()[gpu] + int64(n)

	return min(used, all) * fwk.MaxScore / all, nil
}

// ScoreExtensions returns nil: scores are percentages already.
func (packing) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod names what the score of a pod depends on, so that kube-scheduler can
// reuse scores for pods that are alike.
func (packing) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: profiles.Packing, Value: gpusOf(pod)}}, nil
}
