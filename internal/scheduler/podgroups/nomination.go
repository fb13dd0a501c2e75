package podgroups

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// anyNode stands for a nominatedNodeName that is not known. No node has this name.
const anyNode = "?"

// SetNominatedNode writes status.nominatedNodeName of a pod that waits, unless it is
// there. The informer may not have what was written here last, so the patch sets the
// field whatever the informer has.
func (g *Index) SetNominatedNode(ctx context.Context, of *corev1.Pod, node string) error {
	pod := g.Current(of)
	if pod == nil || pod.Spec.NodeName != "" || g.hasNomination(pod, node) {
		return nil
	}
	g.WroteNomination(pod.UID, cmp.Or(node, anyNode)) // even if the answer is lost
	err := PatchPodStatus(ctx, g.Client, pod, &corev1.PodStatus{NominatedNodeName: anyNode}, &corev1.PodStatus{NominatedNodeName: node})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot nominate pod %s/%s to node %q: %w", pod.Namespace, pod.Name, node, err)
	}
	g.WroteNomination(pod.UID, node)

	return nil
}

// WroteNomination remembers a nominatedNodeName that was written here, or may have been.
func (g *Index) WroteNomination(pod types.UID, node string) { g.nominated.Store(pod, node) }

// hasNomination reports whether a pod has a nominatedNodeName, according to the informer
// and to what was written here last.
func (g *Index) hasNomination(pod *corev1.Pod, node string) bool {
	written, ok := g.nominated.Load(pod.UID)

	return pod.Status.NominatedNodeName == node && (!ok || written == node)
}

// MayBeNominated reports whether a pod may have a nominatedNodeName, according to the
// informer or to what was written here last.
func (g *Index) MayBeNominated(pod *corev1.Pod) bool { return !g.hasNomination(pod, "") }
