package podgroups

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	clientretry "k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// PatchPodStatus writes to the status of a pod what differs between two statuses. If another
// pod has the same name by now, because a StatefulSet has created it again, that pod is not
// changed: the result is that the pod was not found.
func PatchPodStatus(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, from, to *corev1.PodStatus) error {
	before, err := json.Marshal(corev1.Pod{Status: *from})
	if err != nil {
		return err
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: *to})
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return err
	}

	err = clientretry.OnError(clientretry.DefaultBackoff, util.Retriable, func() error {
		_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")

		return err
	})
	if hasOtherUID(err) {
		return apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
	}

	return err
}

// hasOtherUID reports whether the API server has rejected a patch because the object has another
// UID than the patch: it takes the UID for a change.
func hasOtherUID(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil {
		return false
	}

	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}
