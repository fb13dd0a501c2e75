package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

const (
	// nominationsAtOnce bounds the status writes that are under way for a reservation.
	nominationsAtOnce = 50
	// anyNode stands for a nominatedNodeName that is not known. No node has this name.
	anyNode = "?"
)

// nominate writes the reserved places to the status of the pods.
func (p *preemptor) nominate(ctx context.Context, of *plan) error {
	var mu sync.Mutex
	var failed error
	workqueue.ParallelizeUntil(ctx, nominationsAtOnce, len(of.pods), func(i int) {
		if err := p.groups.setNominatedNode(ctx, of.pods[i], of.nodes[i]); err != nil {
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		}
	})

	return errors.Join(failed, ctx.Err())
}

// setNominatedNode writes status.nominatedNodeName of a pod that waits, unless it is
// there. The informer may not have what was written here last, so the patch sets the
// field whatever the informer has.
func (g *groups) setNominatedNode(ctx context.Context, of *corev1.Pod, node string) error {
	pod := g.current(of)
	if pod == nil || pod.Spec.NodeName != "" || g.hasNomination(pod, node) {
		return nil
	}
	g.wroteNomination(pod.UID, cmp.Or(node, anyNode)) // even if the answer is lost
	err := patchPodStatus(ctx, g.client, pod, &corev1.PodStatus{NominatedNodeName: anyNode}, &corev1.PodStatus{NominatedNodeName: node})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot nominate pod %s/%s to node %q: %w", pod.Namespace, pod.Name, node, err)
	}
	g.wroteNomination(pod.UID, node)

	return nil
}

// wroteNomination remembers a nominatedNodeName that was written here, or may have been.
func (g *groups) wroteNomination(pod types.UID, node string) { g.nominated.Store(pod, node) }

// hasNomination reports whether a pod has a nominatedNodeName, according to the informer
// and to what was written here last.
func (g *groups) hasNomination(pod *corev1.Pod, node string) bool {
	written, ok := g.nominated.Load(pod.UID)

	return pod.Status.NominatedNodeName == node && (!ok || written == node)
}

// mayBeNominated reports whether a pod may have a nominatedNodeName, according to the
// informer or to what was written here last.
func (g *groups) mayBeNominated(pod *corev1.Pod) bool { return !g.hasNomination(pod, "") }
