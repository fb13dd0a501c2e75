package clusterfacts

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/internal/decide/health"
	"github.com/arbor-control/arbor/internal/kube"
)

// podsPerPage is how many pods are listed with one request.
const podsPerPage = 500

// scheduler looks for arbor-scheduler, and for pods that it has to place.
func (d *Reader) scheduler(ctx context.Context, namespace string) health.Scheduler {
	s := health.Scheduler{
		Deployment: d.deployment(ctx, namespace, componentScheduler),
		Lease:      one[coordinationv1.Lease](ctx, d, namespace, names.Scheduler),
	}
	for _, name := range health.SchedulerNames(s.Deployment.Is) {
		if err := d.pending(ctx, name, &s.Pods.Is); err != nil {
			s.Pods.Err = kube.ShortError(err)
		}
	}

	return s
}

// pending counts the pods that ask for a scheduler and have no node. Of each, only the metadata
// are read.
func (d *Reader) pending(ctx context.Context, scheduler string, into *health.Pods) error {
	where := fields.Set{"spec.schedulerName": scheduler, "spec.nodeName": "", "status.phase": string(corev1.PodPending)}
	for next := ""; ; {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))

		err := d.List(ctx, pods, client.MatchingFieldsSelector{Selector: where.AsSelector()}, client.Limit(podsPerPage), client.Continue(next))
		if err != nil {
			return err
		}

		for i := range pods.Items {
			pod := &pods.Items[i]
			if into.Count == 0 || pod.CreationTimestamp.Time.Before(into.Since) {
				into.First, into.Since = pod.Namespace+"/"+pod.Name, pod.CreationTimestamp.Time
			}
			into.Count++
		}

		if next = pods.Continue; next == "" {
			return nil
		}
	}
}
