package synthesispod

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/api/names"
	decide "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/synthesis"
)

const (
	// reconcilers is how many compositions are reconciled at once.
	reconcilers = 8
	// soon is the least time after which to requeue.
	soon = 20 * time.Millisecond
)

// Options of the pods.
type Options struct {
	// Image with arbor-executor in it.
	Image string
	// Namespace and ServiceAccount of the pods.
	Namespace, ServiceAccount string
	// Timeout of a synthesis, and CreationTTL how long the kubelet may take to report that it has
	// seen a pod.
	Timeout, CreationTTL time.Duration
	// PullTimeout is how long the kubelet may then take for volumes, network and images, and to
	// start containers.
	PullTimeout time.Duration
	// Resources of the container that runs the program, unless its Synthesizer has some, and
	// HelperResources of the rest.
	Resources, HelperResources corev1.ResourceRequirements
	// Tolerations of the pods, and what nodes must have for them, nil for nothing.
	Tolerations  []corev1.Toleration
	NodeAffinity *corev1.NodeSelectorRequirement
	// Labels and Annotations of the pods. Those of a Synthesizer take precedence.
	Labels, Annotations map[string]string
	// HistoryLimit is how many syntheses before the previous one a composition keeps.
	HistoryLimit int
	// Rules are those between tenants. They are checked before a pod is created, and again in it.
	Rules tenancy.Rules
}

// A Reconciler keeps the pods of compositions.
type Reconciler struct {
	client  client.Client
	reader  client.Reader
	runner  *synthesis.Runner
	options Options
	deleted *prometheus.CounterVec
	// recorder records events on compositions.
	recorder events.EventRecorder
	now      func() time.Time
}

// Cached is how pods are remembered: those of syntheses only, in one namespace,
// and of each no more than is decided on.
func Cached(namespace string) cache.ByObject {
	strip := cache.TransformStripManagedFields()

	return cache.ByObject{
		Namespaces: map[string]cache.Config{namespace: {}},
		Label:      labels.SelectorFromSet(labels.Set{names.ManagedByLabel: managedBy}),
		Transform: func(o any) (any, error) {
			if p, ok := o.(*corev1.Pod); ok {
				p.Spec = corev1.PodSpec{}
			}

			return strip(o)
		},
	}
}

// SetupWithManager starts the controller with the manager.
func SetupWithManager(mgr ctrl.Manager, o Options, registry prometheus.Registerer) error {
	r := &Reconciler{
		client: mgr.GetClient(), reader: mgr.GetAPIReader(), options: o, now: time.Now, recorder: mgr.GetEventRecorder("arbor-synthesis"),
		runner: &synthesis.Runner{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Now: time.Now},
		deleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eno_synthesis_pods_deleted_total",
			Help: "Pods of syntheses that were deleted, by reason.",
		}, []string{"reason"}),
	}
	if err := registry.Register(r.deleted); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}

	return ctrl.NewControllerManagedBy(mgr).
		Named("synthesis-pods").
		For(&enov1.Composition{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(compositionOf)).
		Watches(&enov1.Synthesizer{}, handler.EnqueueRequestsFromMapFunc(r.served)).
		WithOptions(controller.Options{MaxConcurrentReconciles: reconcilers}).
		Complete(kube.Patient(r))
}

// compositionOf maps a pod to its composition.
func compositionOf(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: owner(o)}}
}

func owner(pod client.Object) types.NamespacedName {
	a := pod.GetAnnotations()

	return types.NamespacedName{Namespace: a[enov1.LabelCompositionNamespace], Name: a[enov1.LabelCompositionName]}
}

// served maps a Synthesizer to the compositions that have pods of it.
func (r *Reconciler) served(ctx context.Context, o client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	// The cache answers from memory; it fails only if it is not there.
	if err := r.client.List(ctx, pods, client.MatchingLabels{enov1.LabelSynthesizerName: label(o.GetName())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var all []reconcile.Request
	for i := range pods.Items {
		all = append(all, reconcile.Request{NamespacedName: owner(&pods.Items[i])})
	}

	return all
}

// Reconcile reconciles the pods of one composition.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	v, err := r.gather(ctx, r.client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := decide.Pods(v, r.now())
	if !plan.Idle() {
		// One cache can be behind the other.
		if v, err = r.gather(ctx, r.reader, request.NamespacedName); err != nil {
			return reconcile.Result{}, err
		}
		plan = decide.Pods(v, r.now())
	}
	if plan.Explain != nil {
		v.Warnings = r.warnings(ctx, plan.Explain)
		plan = decide.Pods(v, r.now())
	}
	if err := r.apply(ctx, v, plan); err != nil {
		return reconcile.Result{}, err
	}
	if plan.Next.IsZero() {
		return reconcile.Result{}, nil
	}

	return reconcile.Result{RequeueAfter: max(plan.Next.Sub(r.now()), soon)}, nil
}

// gather reads everything that is decided on. Pods are read from the cache: one
// that is not in it yet is found when it is made again.
func (r *Reconciler) gather(ctx context.Context, from client.Reader, key types.NamespacedName) (decide.PodView, error) {
	v := decide.PodView{Rules: r.options.Rules, Namespace: r.options.Namespace, Timeout: r.options.Timeout, CreationTTL: r.options.CreationTTL, PullTimeout: r.options.PullTimeout}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.MatchingLabels{enov1.LabelCompositionName: label(key.Name)}, client.UnsafeDisableDeepCopy); err != nil {
		return v, fmt.Errorf("cannot list Pods: %w", err)
	}
	for i := range pods.Items {
		if owner(&pods.Items[i]) == key {
			v.Pods = append(v.Pods, &pods.Items[i])
		}
	}
	c, s := &enov1.Composition{}, &enov1.Synthesizer{}
	if err := from.Get(ctx, key, c); apierrors.IsNotFound(err) {
		return v, nil
	} else if err != nil {
		return v, fmt.Errorf("cannot read Composition %s: %w", key, err)
	}
	v.Composition = c
	if err := from.Get(ctx, client.ObjectKey{Name: c.Spec.Synthesizer.Name}, s); err == nil {
		v.Synthesizer = s
	} else if !apierrors.IsNotFound(err) {
		return v, fmt.Errorf("cannot read Synthesizer %s: %w", c.Spec.Synthesizer.Name, err)
	}
	if !decide.Running(&c.Status) {
		return v, nil
	}
	var err error
	v.State, err = r.state(ctx)

	return v, err
}

// warnings returns the warnings about a pod, not nil. They only explain a failure, which is
// reported without them if they cannot be read.
func (r *Reconciler) warnings(ctx context.Context, pod *corev1.Pod) []corev1.Event {
	list := &corev1.EventList{}
	err := r.reader.List(ctx, list, client.InNamespace(pod.Namespace), client.MatchingFields{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the events of a pod, which would name why it does not start", "pod", pod.Name)
	}

	return slices.Concat([]corev1.Event{}, list.Items)
}

// state reads the namespace that pods are in.
func (r *Reconciler) state(ctx context.Context) (decide.NamespaceState, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := r.reader.Get(ctx, client.ObjectKey{Name: r.options.Namespace}, ns)
	switch {
	case apierrors.IsNotFound(err):
		return decide.NamespaceMissing, nil
	case err != nil:
		return decide.NamespaceActive, fmt.Errorf("cannot read Namespace %s: %w", r.options.Namespace, err)
	case ns.DeletionTimestamp != nil:
		return decide.NamespaceTerminating, nil
	default:
		return decide.NamespaceActive, nil
	}
}

// remove deletes a pod, unless it is gone or another one has its name by now.
func (r *Reconciler) remove(ctx context.Context, d decide.PodDeletion) error {
	same := client.Preconditions{UID: &d.Pod.UID}
	if d.Reason == decide.PodKubeletTimeout {
		same.ResourceVersion = &d.Pod.ResourceVersion // the kubelet may have spoken since
	}
	err := r.client.Delete(ctx, d.Pod, same)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete Pod %s/%s: %w", d.Pod.Namespace, d.Pod.Name, err)
	}
	if err == nil {
		r.deleted.WithLabelValues(d.Reason).Inc()
		ctrl.LoggerFrom(ctx).Info("Deleted the pod of a synthesis", "pod", d.Pod.Name, "reason", d.Reason)
	}

	return nil
}

// reportIgnored records an event if a Synthesizer has labels for its pods that are reserved.
func (r *Reconciler) reportIgnored(c *enov1.Composition, s *enov1.Synthesizer) {
	if ignored := ignoredLabels(s); len(ignored) > 0 {
		r.recorder.Eventf(c.DeepCopy(), nil, corev1.EventTypeWarning, "LabelsIgnored", "CreatePod",
			"Synthesizer %s: spec.podOverrides.labels: %s: these labels select pods of Arbor itself and are ignored; use other ones", s.Name, strings.Join(ignored, ", "))
	}
}

// apply does what was decided.
func (r *Reconciler) apply(ctx context.Context, v decide.PodView, plan decide.PodPlan) error {
	for _, d := range plan.Delete {
		if err := r.remove(ctx, d); err != nil {
			return err
		}
	}
	why := plan.GiveUp
	if plan.Create && why == "" {
		err := r.client.Create(ctx, build(v.Composition, v.Synthesizer, r.options))
		switch {
		case err == nil, apierrors.IsAlreadyExists(err): // its events bring the composition back
			r.reportIgnored(v.Composition, v.Synthesizer)

			return nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsBadRequest(err):
			why = "cannot create the pod of the synthesis: " + err.Error()
		default:
			return fmt.Errorf("cannot create the pod of a synthesis of Composition %s/%s: %w", v.Composition.Namespace, v.Composition.Name, err)
		}
	}
	if why == "" {
		return nil
	}
	wrote, err := r.runner.GiveUp(ctx, v.Composition, why)
	if wrote {
		ctrl.LoggerFrom(ctx).Info("Gave a synthesis up", "synthesis", v.Composition.Status.InFlightSynthesis.UUID, "reason", why)
	}

	return err
}
