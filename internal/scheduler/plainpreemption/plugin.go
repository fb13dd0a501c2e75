package plainpreemption

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
)

// plainPreemption is DefaultPreemption for clusters with gangs. Pods without a
// PodGroup preempt with it. It never selects a member of a non-preemptible gang,
// compares priorities with that of the gang instead of that of its pods, and
// selects with a member all members that the gang loses with it.
//
// Where no pod belongs to a PodGroup, it selects what DefaultPreemption selects.
type plainPreemption struct {
	*defaultpreemption.DefaultPreemption

	handle fwk.Handle
	groups *podgroups.Index
}

var (
	_ fwk.PostFilterPlugin  = &plainPreemption{}
	_ fwk.PreEnqueuePlugin  = &plainPreemption{}
	_ fwk.EnqueueExtensions = &plainPreemption{}
	_ preemption.Interface  = &plainPreemption{}
)

// New returns a factory of the plugin.
func New(groups *podgroups.Index) frameworkruntime.PluginFactory {
	return func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		return makePlainPreemption(ctx, groups, args, handle)
	}
}

func makePlainPreemption(ctx context.Context, groups *podgroups.Index, args runtime.Object, handle fwk.Handle) (*plainPreemption, error) {
	handle = plainNominations{handle}
	kube, err := defaultpreemption.New(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	p := &plainPreemption{DefaultPreemption: kube, handle: handle, groups: groups}
	kube.Executor.PreemptPod = newPlainEvictor(handle, groups).preemptPod
	kube.Evaluator = preemption.NewEvaluator(profiles.Preemption, handle, p, kube.Executor)

	return p, nil
}

// Name returns the name of the plugin.
func (*plainPreemption) Name() string { return profiles.Preemption }

// PostFilter preempts for a plain pod. Members of gangs are not scheduled one by
// one, so they must not preempt one by one either.
func (p *plainPreemption) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if _, ok := decide.GroupOf(pod); ok {
		return nil, fwk.NewStatus(fwk.Unschedulable, "preemption: a gang preempts as a whole")
	}
	ctx = context.WithValue(ctx, runningGangsKey{}, newRunningGangs(p.groups, p.handle))

	return p.DefaultPreemption.PostFilter(ctx, state, pod, statuses)
}

// PodEligibleToPreemptOthers reports whether the pod may preempt now. As with
// DefaultPreemption, it may not while victims terminate on the node that it is
// nominated to. That includes members whose own priority is higher than that of
// their gang.
func (p *plainPreemption) PodEligibleToPreemptOthers(ctx context.Context, pod *corev1.Pod, nominated *fwk.Status) (bool, string) {
	eligible, why := p.DefaultPreemption.PodEligibleToPreemptOthers(ctx, pod, nominated)
	if !eligible || pod.Status.NominatedNodeName == "" || nominated.Code() == fwk.UnschedulableAndUnresolvable {
		return eligible, why
	}
	node, err := p.handle.SnapshotSharedLister().NodeInfos().Get(pod.Status.NominatedNodeName)
	if err != nil {
		return true, "" // the node is gone
	}
	gangs := p.gangs(ctx)
	for _, info := range node.GetPods() {
		if other := info.GetPod(); terminatesByPreemption(other) && gangs.priority(other) < corev1helpers.PodPriority(pod) {
			return false, "not eligible due to a terminating pod on the nominated node."
		}
	}

	return true, ""
}

func terminatesByPreemption(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			return c.Status == corev1.ConditionTrue && c.Reason == corev1.PodReasonPreemptionByScheduler
		}
	}

	return false
}

// gangs returns the gangs as this scheduling cycle sees them.
func (p *plainPreemption) gangs(ctx context.Context) *runningGangs {
	if gangs, ok := ctx.Value(runningGangsKey{}).(*runningGangs); ok {
		return gangs
	}

	return newRunningGangs(p.groups, p.handle)
}

// plainNominations hides the nominations of gangs from preemption, which clears
// those of pods with a lower priority on the node that it selects. The
// nominations of a gang belong together, and the gang's priority protects them.
type plainNominations struct{ fwk.Handle }

// NominatedPodsForNode returns the plain pods that are nominated to a node.
func (n plainNominations) NominatedPodsForNode(node string) []fwk.PodInfo {
	var plain []fwk.PodInfo
	for _, info := range n.Handle.NominatedPodsForNode(node) {
		if _, ok := decide.GroupOf(info.GetPod()); !ok {
			plain = append(plain, info)
		}
	}

	return plain
}
