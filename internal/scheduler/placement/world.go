package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
)

// A World is where a gang is tried: a transaction on a Cache. It is the
// scheduler's own in the cycle, and a private one for questions.
//
// It is the Cache and not its Snapshot that takes the pods, because a pod that
// is put into the Snapshot of this release does not keep others away by its
// anti-affinity.
type World struct {
	ctx      context.Context //nolint:containedctx // what was held is given back even if nobody waits any more
	fw       framework.Framework
	cache    internalcache.Cache
	snapshot *internalcache.Snapshot
	pods     []*corev1.Pod // by member
	// priority is that of the gang, which its pods may not have themselves.
	priority int32
	// Shape returns what tells which members are alike, "" if nothing is known.
	Shape func(member int) string
	// Reserved returns the node that is reserved for a pod, "" if there is none.
	Reserved func(types.UID) string
	// Choose finds a node for a pod in the snapshot.
	Choose func(ctx context.Context, state fwk.CycleState, member int) (string, error)

	Held []Holding
	// current says that the snapshot is that of the cache.
	current bool
	// group lets members share claims that are not allocated yet.
	group fwk.PodGroupCycleState
	// Rejectors are the plugins that refused somebody: what happens to them may
	// help the gang.
	Rejectors sets.Set[string]
}

// A Holding is one pod that has a place until it is rolled back.
type Holding struct {
	Member int
	Pod    *corev1.Pod // with its node
	State  fwk.CycleState
	Node   string
}

var _ gang.World = &World{}

// NewWorld begins a transaction for the pods of a group, in which the fitter finds nodes.
func NewWorld(ctx context.Context, f *Fitter, cache internalcache.Cache, group *v2alpha2.PodGroup, pods []*corev1.Pod, priority int32) *World {
	f.begin = startOf(group)
	w := &World{
		ctx: context.WithoutCancel(ctx), fw: f.fw, cache: cache, snapshot: f.snapshot, pods: pods, priority: priority,
		Reserved: func(types.UID) string { return "" }, Shape: func(int) string { return "" },
		group: framework.NewCycleState(), Rejectors: sets.New[string](),
	}
	w.Choose = func(ctx context.Context, state fwk.CycleState, member int) (string, error) {
		pod := w.pods[member]

		return f.choose(ctx, state, podinfo.WithPriority(pod, priority), w.Shape(member), cmp.Or(w.Reserved(pod.UID), pod.Status.NominatedNodeName))
	}

	return w
}

// Try finds a node for a member and holds it.
func (w *World) Try(ctx context.Context, member int) (string, *gang.Misfit, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	if !w.current {
		if err := w.cache.UpdateSnapshot(klog.FromContext(ctx), w.snapshot); err != nil {
			return "", nil, err
		}
		w.current = true
	}
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(w.group)
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	node, err := w.Choose(ctx, state, member)
	if err != nil {
		return w.refused(err)
	}
	if err := w.hold(ctx, member, node, state); err != nil {
		return w.refused(err)
	}

	return node, nil, nil
}

// refused tells a pod that does not fit from a scheduler that does not work.
func (w *World) refused(err error) (string, *gang.Misfit, error) {
	var fit *framework.FitError
	switch {
	case errors.As(err, &fit):
		w.Rejectors = w.Rejectors.Union(fit.Diagnosis.UnschedulablePlugins).Union(fit.Diagnosis.PendingPlugins)

		return "", misfit(fit), nil
	case errors.Is(err, errNoNodes):
		return "", &gang.Misfit{Reasons: map[string]int{err.Error(): 0}}, nil
	default:
		return "", nil, err
	}
}

// hold gives the pod its place in the cache, and its plugins theirs.
func (w *World) hold(ctx context.Context, member int, node string, state fwk.CycleState) error {
	logger := klog.FromContext(ctx)
	pod := w.pods[member].DeepCopy()
	pod.Spec.NodeName = node
	if err := w.cache.AssumePod(logger, pod); err != nil {
		return fmt.Errorf("cannot assume pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	w.current = false
	w.fw.DeleteNominatedPodIfExists(pod)
	h := Holding{Member: member, Pod: pod, State: state, Node: node}
	if status := w.fw.RunReservePluginsReserve(ctx, state, pod, node); !status.IsSuccess() {
		w.release(h)
		if !status.IsRejected() {
			return status.AsError()
		}
		diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
		diagnosis.NodeToStatus.Set(node, status)
		diagnosis.AddPluginStatus(status)

		return &framework.FitError{Pod: pod, NumAllNodes: 1, Diagnosis: diagnosis}
	}
	w.Held = append(w.Held, h)

	return nil
}

// Mark is what Rollback goes back to.
func (w *World) Mark() int { return len(w.Held) }

// Rollback takes their places from those who got them since, last first.
func (w *World) Rollback(mark int) {
	for len(w.Held) > mark {
		w.release(w.Held[len(w.Held)-1])
		w.Held = w.Held[:len(w.Held)-1]
	}
}

func (w *World) release(h Holding) {
	w.fw.RunReservePluginsUnreserve(w.ctx, h.State, h.Pod, h.Node)
	if err := w.cache.ForgetPod(klog.FromContext(w.ctx), h.Pod); err != nil {
		klog.FromContext(w.ctx).Error(err, "A pod of a gang was not in the cache any more", "pod", klog.KObj(h.Pod))
	}
	w.current = false
	pod := w.pods[h.Member]
	if nominated := pod.Status.NominatedNodeName; nominated != "" {
		w.fw.AddNominatedPod(klog.FromContext(w.ctx), podinfo.New(pod), &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: nominated})
	}
}

// misfit counts what the nodes said.
func misfit(fit *framework.FitError) *gang.Misfit {
	m := &gang.Misfit{Nodes: fit.NumAllNodes, Reasons: map[string]int{}}
	if fit.Diagnosis.PreFilterMsg != "" {
		m.Reasons[fit.Diagnosis.PreFilterMsg] = fit.NumAllNodes

		return m
	}
	nodes := fit.Diagnosis.NodeToStatus
	nodes.ForEachExplicitNode(func(_ string, status *fwk.Status) {
		for _, reason := range status.Reasons() {
			m.Reasons[reason]++
		}
	})
	if absent := fit.NumAllNodes - nodes.Len(); absent > 0 {
		for _, reason := range nodes.AbsentNodesStatus().Reasons() {
			m.Reasons[reason] += absent
		}
	}
	maps.DeleteFunc(m.Reasons, func(reason string, _ int) bool { return reason == "" })

	return m
}
