package plainpreemption

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// SelectVictimsOnNode returns the victims with which the pod fits a node, of
// which none could stay, and how many of them violate a PodDisruptionBudget. As
// DefaultPreemption does, it removes everything that the pod may preempt, and
// then reprieves what need not leave, but in units instead of pods. It owns
// state and node.
func (p *plainPreemption) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, pdbs []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	units := p.gangs(ctx).unitsOn(node, corev1helpers.PodPriority(pod), p.extended(pod))
	if len(units) == 0 {
		return nil, 0, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "No preemption victims found for incoming pod")
	}
	r := &nodeTrial{handle: p.handle, state: state, pod: pod, node: node, others: map[string]fwk.NodeInfo{}}
	for _, u := range units {
		if err := r.remove(ctx, u); err != nil {
			return nil, 0, fwk.AsStatus(err)
		}
	}
	if status := r.fits(ctx); !status.IsSuccess() {
		return nil, 0, status
	}
	countViolations(units, pdbs)
	gone, err := r.reprieve(ctx, units)
	if err != nil {
		return nil, 0, fwk.AsStatus(err)
	}
	var victims []*corev1.Pod
	violations := 0
	for _, u := range gone {
		victims = append(victims, u.pods...)
		violations += u.violations
	}

	return victims, violations, fwk.NewStatus(fwk.Success)
}

// extended reports whether an extender has a say in the preemption for a pod.
// Extenders know the victims of a node by the pods on that node, so victims on
// other nodes cannot be explained to them.
func (p *plainPreemption) extended(pod *corev1.Pod) bool {
	return slices.ContainsFunc(p.handle.Extenders(), func(e fwk.Extender) bool {
		return e.SupportsPreemption() && e.IsInterested(pod)
	})
}

// A nodeTrial removes pods from copies of nodes, and adds them again.
type nodeTrial struct {
	handle fwk.Handle
	state  fwk.CycleState
	pod    *corev1.Pod
	node   fwk.NodeInfo
	// others are copies of other nodes, by name.
	others map[string]fwk.NodeInfo
}

// fits reports whether the pod fits the node now.
func (r *nodeTrial) fits(ctx context.Context) *fwk.Status {
	return r.handle.RunFilterPluginsWithNominatedPods(ctx, r.state, r.pod, r.node)
}

// reprieve adds the units again that need not leave, those first that violate a
// PodDisruptionBudget, and returns the others.
func (r *nodeTrial) reprieve(ctx context.Context, units []*nodeUnit) ([]*nodeUnit, error) {
	gone := slices.Clone(units)
	todo := slices.Clone(units)
	slices.SortStableFunc(todo, func(a, b *nodeUnit) int { return min(b.violations, 1) - min(a.violations, 1) })
	for {
		// A part of a gang may only be able to stay once another part stays.
		next := slices.IndexFunc(todo, func(u *nodeUnit) bool { return u.mayStay(gone) })
		if next < 0 {
			return gone, nil
		}
		u := todo[next]
		todo = slices.Delete(todo, next, next+1)
		stays, err := r.try(ctx, u)
		if err != nil {
			return nil, err
		}
		if stays {
			gone = slices.DeleteFunc(gone, func(other *nodeUnit) bool { return other == u })
		}
	}
}

// try adds a unit if the pod still fits then.
func (r *nodeTrial) try(ctx context.Context, u *nodeUnit) (stays bool, err error) {
	if err := r.add(ctx, u); err != nil {
		return false, err
	}
	if r.fits(ctx).IsSuccess() {
		return true, nil
	}

	return false, r.remove(ctx, u)
}

func (r *nodeTrial) remove(ctx context.Context, u *nodeUnit) error {
	for _, at := range u.places {
		node := r.copyOf(at.node)
		if err := node.RemovePod(klog.FromContext(ctx), at.pod.GetPod()); err != nil {
			return err
		}
		if status := r.handle.RunPreFilterExtensionRemovePod(ctx, r.state, r.pod, at.pod, node); !status.IsSuccess() {
			return status.AsError()
		}
	}

	return nil
}

func (r *nodeTrial) add(ctx context.Context, u *nodeUnit) error {
	for _, at := range u.places {
		node := r.copyOf(at.node)
		node.AddPodInfo(at.pod)
		if status := r.handle.RunPreFilterExtensionAddPod(ctx, r.state, r.pod, at.pod, node); !status.IsSuccess() {
			return status.AsError()
		}
	}

	return nil
}

// copyOf returns the copy of a node that the dry run may change.
func (r *nodeTrial) copyOf(node fwk.NodeInfo) fwk.NodeInfo {
	name := node.Node().Name
	if name == r.node.Node().Name {
		return r.node
	}
	if _, ok := r.others[name]; !ok {
		r.others[name] = node.Snapshot()
	}

	return r.others[name]
}
