package preempt

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// askExtenders leaves out the nodes that extenders reject, so that no pod is evicted
// for a place that an extender does not allow. An extender that takes part in
// preemption may reject a node because it is full: that alone does not count. One that
// may be ignored, and fails, is not asked again. No request is made once the context is
// done.
func (d *dryRun) askExtenders(ctx context.Context, extenders []fwk.Extender) error {
	ignored := sets.New[int]()
	for _, f := range d.filters {
		for i, e := range extenders {
			if !e.IsFilter() || !e.IsInterested(f.pod) || ignored.Has(i) {
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := f.ask(e, d.nodes)
			if err != nil && !e.IsIgnorable() {
				return fmt.Errorf("extender %s: %w", e.Name(), err)
			}
			if err != nil {
				ignored.Insert(i)
			}
		}
	}

	return ctx.Err()
}

// ask leaves out the nodes that an extender rejects.
func (f *filterState) ask(e fwk.Extender, nodes []fwk.NodeInfo) error {
	left, full, _, err := e.Filter(f.pod, nodes)
	if err != nil {
		return err
	}
	allowed := sets.New[string]()
	for _, node := range left {
		allowed.Insert(node.Node().Name)
	}
	if e.SupportsPreemption() {
		for name := range full {
			allowed.Insert(name)
		}
	}
	if f.allowed != nil {
		allowed = allowed.Intersection(f.allowed)
	}
	f.allowed = allowed

	return nil
}

// processPreemption asks the extenders that take part in preemption. Each of them has
// to accept every place with exactly the victims of the plan.
func (d *dryRun) processPreemption(ctx context.Context, extenders []fwk.Extender, p *plan) error {
	byNode := victimsByNode(p.victims)
	for i, pod := range p.pods {
		v := byNode[p.nodes[i]]
		if v == nil {
			continue
		}
		for _, e := range extenders {
			if !e.SupportsPreemption() || !e.IsInterested(pod) {
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := d.acceptsVictims(e, pod, p.nodes[i], v); err != nil {
				return err
			}
		}
	}

	return nil
}

// victimsByNode groups victims the way extenders expect them.
func victimsByNode(pods []*corev1.Pod) map[string]*extenderv1.Victims {
	byNode := map[string]*extenderv1.Victims{}
	for _, pod := range pods {
		v := byNode[pod.Spec.NodeName]
		if v == nil {
			v = &extenderv1.Victims{}
			byNode[pod.Spec.NodeName] = v
		}
		v.Pods = append(v.Pods, pod)
	}

	return byNode
}

// acceptsVictims returns an error unless an extender accepts a place with exactly these
// victims, or may be ignored.
func (d *dryRun) acceptsVictims(e fwk.Extender, pod *corev1.Pod, node string, v *extenderv1.Victims) error {
	left, err := e.ProcessPreemption(pod, map[string]*extenderv1.Victims{node: v}, d.fw.SnapshotSharedLister().NodeInfos())
	if err != nil && e.IsIgnorable() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("extender %s: %w", e.Name(), err)
	}
	if accepted := left[node]; accepted == nil || len(accepted.Pods) != len(v.Pods) {
		return fmt.Errorf("extender %s does not accept the eviction of %d pods on node %s", e.Name(), len(v.Pods), node)
	}

	return nil
}
