package podgroups

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// Members returns the pods of a group. A pod that is being bound has its node.
func (g *Index) Members(key types.NamespacedName) []*corev1.Pod {
	pods := g.listed(key)
	for i, pod := range pods {
		pods[i] = g.Placed(pod)
	}

	return pods
}

// listed returns the pods that name the group as the API server has them, those that
// succeeded included, and without those that are being evicted.
func (g *Index) listed(key types.NamespacedName) []*corev1.Pod {
	return slices.DeleteFunc(g.named(key), func(pod *corev1.Pod) bool { return g.IsLeaving(pod.UID) })
}

// named returns all pods that name the group, as the API server has them.
func (g *Index) named(key types.NamespacedName) []*corev1.Pod {
	var pods []*corev1.Pod
	seen := map[types.UID]bool{} // a pod that has just succeeded may be in both
	for _, informer := range []cache.SharedIndexInformer{g.Succeeded, g.Pods} {
		found, err := informer.GetIndexer().ByIndex(byGroup, key.String())
		if err != nil {
			continue // the index exists since the start
		}
		for _, o := range found {
			pod, ok := o.(*corev1.Pod)
			if !ok || seen[pod.UID] {
				continue
			}
			seen[pod.UID] = true
			pods = append(pods, pod)
		}
	}

	return pods
}

// IsLeaving reports whether a pod is being evicted here.
func (g *Index) IsLeaving(pod types.UID) bool {
	_, ok := g.leaving.Load(pod)

	return ok
}

// IsCommitted reports whether a pod is being bound here.
func (g *Index) IsCommitted(pod types.UID) bool {
	_, ok := g.committed.Load(pod)

	return ok
}

// Leaving returns the pods that are being evicted here.
func (g *Index) Leaving() []types.UID {
	var all []types.UID
	g.leaving.Range(func(uid, _ any) bool {
		all = append(all, uid.(types.UID)) //nolint:forcetypeassert // only UIDs are stored

		return true
	})

	return all
}

// MarkLeaving has a pod no longer count, whether or not it exists.
func (g *Index) MarkLeaving(pod types.UID) { g.leaving.Store(pod, true) }

// MarkLeavingBy does so unless the pod is marked already. by is who evicts it.
func (g *Index) MarkLeavingBy(pod types.UID, by any) { g.leaving.LoadOrStore(pod, by) }

// LeavingBy returns who evicts a pod: nil if it is not marked, true if that is not known.
func (g *Index) LeavingBy(pod types.UID) any {
	by, _ := g.leaving.Load(pod)

	return by
}

// UnmarkBy has a pod count again if it is marked by that evictor.
func (g *Index) UnmarkBy(pod *corev1.Pod, by any) {
	if g.leaving.CompareAndDelete(pod.UID, by) {
		g.Unmark(pod)
	}
}

// ForgetLeaving removes the mark of a pod of which no event is to come.
func (g *Index) ForgetLeaving(pod types.UID) { g.leaving.Delete(pod) }

// Commit has a pod count as placed, because it is being bound here.
func (g *Index) Commit(pod types.UID, node string) { g.committed.Store(pod, node) }

// Uncommit ends that for a pod that is not bound.
func (g *Index) Uncommit(pod types.UID) { g.committed.Delete(pod) }

// Current returns a pod as the informer has it, nil if it no longer exists or has
// ended.
func (g *Index) Current(pod *corev1.Pod) *corev1.Pod {
	o, ok, err := g.Pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	if !ok || err != nil {
		return nil
	}
	is, ok := o.(*corev1.Pod)
	if !ok || is.UID != pod.UID {
		return nil
	}

	return is
}

// UsingRoom returns a pod as it is now if it still is where it was, bound or being
// bound, and nil otherwise. A pod that is being bound has its node.
func (g *Index) UsingRoom(pod *corev1.Pod) *corev1.Pod {
	is := g.Current(pod)
	if is == nil {
		return nil
	}
	if is = g.Placed(is); is.Spec.NodeName != pod.Spec.NodeName {
		return nil
	}

	return is
}

// Mark has a pod no longer count, because it is evicted. A pod that no longer exists is
// not marked: no event would remove the mark.
func (g *Index) Mark(pod *corev1.Pod) {
	g.leaving.Store(pod.UID, true)
	if g.Current(pod) == nil {
		g.leaving.Delete(pod.UID)
	}
}

// DeletedPod notes that the API server has deleted a pod that was marked. What is known of
// it ends with the event of its deletion; if that was earlier, it ends here.
func (g *Index) DeletedPod(pod *corev1.Pod) {
	g.deleted.Store(pod.UID, true)
	if g.Current(pod) == nil {
		g.deleted.Delete(pod.UID)
		g.leaving.Delete(pod.UID)
	}
}

// WasDeleted reports whether the API server has deleted a pod, although the informer may
// not know yet.
func (g *Index) WasDeleted(pod types.UID) bool {
	_, ok := g.deleted.Load(pod)

	return ok
}

// Unmark has a pod count again that was to be evicted and stays. Its gang may be
// complete again. A pod that the API server has deleted does not stay.
func (g *Index) Unmark(pod *corev1.Pod) {
	if g.WasDeleted(pod.UID) {
		return
	}
	g.leaving.Delete(pod.UID)
	if key, ok := decide.GroupOf(pod); ok && g.OnStay != nil {
		g.OnStay(key)
	}
}

// Running returns the pods of a gang that have a place, as a gang. It is nil if the
// PodGroup does not exist or is being deleted: its pods are plain ones then. If it
// cannot be read, it is a gang that needs all of them.
func (g *Index) Running(key types.NamespacedName) *decide.Gang {
	pg := g.Group(key)
	if pg == nil || pg.DeletionTimestamp != nil {
		return nil
	}
	var placed []*corev1.Pod
	for _, pod := range g.Members(key) {
		if pod.Spec.NodeName != "" {
			placed = append(placed, pod)
		}
	}
	read, why := decide.Read(pg, placed, g.Rules)
	if why == nil {
		return read
	}
	whole := &v2alpha2.PodGroup{ObjectMeta: pg.ObjectMeta, Spec: v2alpha2.PodGroupSpec{
		MinMember:         new(int32(len(placed))), //nolint:gosec // no group has so many pods
		PriorityClassName: pg.Spec.PriorityClassName, Preemptibility: pg.Spec.Preemptibility,
	}}
	for i, pod := range placed {
		c := *pod
		c.Labels = maps.Clone(pod.Labels)
		delete(c.Labels, decide.SubGroupLabel)
		placed[i] = &c
	}
	if read, why = decide.Read(whole, placed, g.Rules); why != nil {
		return nil
	}

	return read
}

// ByUID returns all pods that have not ended.
func (g *Index) ByUID() map[types.UID]*corev1.Pod {
	all := map[types.UID]*corev1.Pod{}
	for _, o := range g.Pods.GetStore().List() {
		if pod, ok := o.(*corev1.Pod); ok {
			all[pod.UID] = pod
		}
	}

	return all
}

// IsOwnChange takes a change of a pod, and reports whether it is the binding
// that this scheduler has made.
func (g *Index) IsOwnChange(was, is *corev1.Pod) bool {
	switch {
	case is != nil && is.Spec.NodeName != "":
		g.nominated.Delete(is.UID)
		_, here := g.committed.LoadAndDelete(is.UID)

		return here
	case is == nil && was != nil:
		g.leaving.Delete(was.UID)
		g.deleted.Delete(was.UID)
		g.committed.Delete(was.UID)
		g.nominated.Delete(was.UID)
	}

	return false
}

// Placed returns a pod that is being bound with its node.
func (g *Index) Placed(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.NodeName != "" {
		return pod
	}
	node, ok := g.committed.Load(pod.UID)
	if !ok {
		return pod
	}
	c := *pod
	c.Spec.NodeName, _ = node.(string)

	return &c
}

// BoundMembers returns the pods of a group as the API server has them, without
// those that are being evicted, and whether any of them is being bound. It reports claimed
// if any is about to be evicted and not deleted yet: it may still stay, so what the group
// has is not known.
func (g *Index) BoundMembers(key types.NamespacedName) (pods []*corev1.Pod, binding, claimed bool) {
	// A pod that is bound between the two lists counts as both, never as neither.
	for _, pod := range g.named(key) {
		claimed = claimed || pod.DeletionTimestamp == nil && g.IsLeaving(pod.UID)
		binding = binding || pod.Spec.NodeName == "" && g.IsCommitted(pod.UID)
	}

	return g.listed(key), binding, claimed
}
