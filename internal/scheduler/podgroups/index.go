package podgroups

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// byGroup is the index of pods by the PodGroup that they name.
const byGroup = "arbor.podGroup"

// Index knows every PodGroup and its pods, from informers.
type Index struct {
	Client clientset.Interface
	// REST speaks of PodGroups.
	REST *rest.RESTClient
	// PodGroups are the PodGroups.
	PodGroups cache.SharedIndexInformer
	// Pods is kube-scheduler's own informer, which leaves out what has ended;
	// Succeeded has those that count nevertheless.
	Pods, Succeeded cache.SharedIndexInformer
	Classes         schedulinglisters.PriorityClassLister
	ClassInformer   cache.SharedIndexInformer
	// seenClasses has each PriorityClass by name as it was last. One that is replaced does not
	// exist for a moment, and a deleted one takes no priority from what runs.
	seenClasses sync.Map
	Volumes     cache.SharedIndexInformer
	Rules       gang.Rules
	// leaving has the UIDs of pods that are being evicted. They no longer count,
	// although the API server may not know yet: what takes the place of the first of a
	// gang must not find the others still there.
	leaving sync.Map
	// deleted has the UIDs of those of them that the API server has deleted, or does not
	// have any more. A pod without a grace period is gone at once, and the informer may
	// still have it as it ran.
	deleted sync.Map
	// committed has the nodes, by UID, of pods that are being bound here. They count
	// as placed before the API server knows. Places that a cycle only tries are not
	// among them.
	committed sync.Map
	// nominated has the nominatedNodeName, by UID, that was last written here for a
	// reservation, "" if it was removed. The informer may be late.
	nominated sync.Map
	// OnStay is called when a pod that was leaving stays after all.
	OnStay func(types.NamespacedName)
}

// New returns an index of the pods that a factory reads, and of PodGroups.
func New(config *rest.Config, client clientset.Interface, factory informers.SharedInformerFactory, rules gang.Rules) (*Index, error) {
	reader, err := NewClient(config)
	if err != nil {
		return nil, err
	}
	g := &Index{
		Client: client, REST: reader, Rules: rules,
		PodGroups: cache.NewSharedIndexInformer(
			cache.NewListWatchFromClient(reader, "podgroups", metav1.NamespaceAll, fields.Everything()),
			&v2alpha2.PodGroup{}, 0, cache.Indexers{}),
		Pods:    factory.Core().V1().Pods().Informer(),
		Volumes: factory.Core().V1().PersistentVolumeClaims().Informer(),
		Classes: factory.Scheduling().V1().PriorityClasses().Lister(), ClassInformer: factory.Scheduling().V1().PriorityClasses().Informer(),
		Succeeded: coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byGroup: indexByGroup}, func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("status.phase", string(corev1.PodSucceeded)).String()
		}),
	}
	if err := g.PodGroups.SetTransform(unmanaged); err != nil {
		return nil, err
	}
	if err := g.Succeeded.SetTransform(bare); err != nil {
		return nil, err
	}
	if err := g.Pods.AddIndexers(cache.Indexers{byGroup: indexByGroup}); err != nil {
		return nil, fmt.Errorf("cannot index pods by their group: %w", err)
	}

	return g, nil
}

// NewClient speaks of PodGroups.
func NewClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := v2alpha2.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	c.GroupVersion = &v2alpha2.GroupVersion
	c.APIPath = "/apis"
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()

	return rest.RESTClientFor(c)
}

func indexByGroup(o any) ([]string, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	if key, ok := decide.GroupOf(pod); ok {
		return []string{key.String()}, nil
	}

	return nil, nil
}

// unmanaged drops what takes the most room and nobody here reads.
func unmanaged(o any) (any, error) {
	if pg, ok := o.(*v2alpha2.PodGroup); ok {
		pg.ManagedFields = nil
	}

	return o, nil
}

// bare keeps of a pod that has ended what says whose it was.
func bare(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}

	return &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, Annotations: groupAnnotation(pod), CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulerName: pod.Spec.SchedulerName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

func groupAnnotation(pod *corev1.Pod) map[string]string {
	if name, ok := pod.Annotations[decide.GroupAnnotation]; ok {
		return map[string]string{decide.GroupAnnotation: name}
	}

	return nil
}

// Start reads all groups before it returns. Where nobody has installed their
// definition yet, it goes on without, and reads them when that comes.
func (g *Index) Start(ctx context.Context) error {
	go g.Succeeded.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), g.Succeeded.HasSynced) {
		return ctx.Err()
	}
	if g.served() {
		go g.PodGroups.Run(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), g.PodGroups.HasSynced) {
			return ctx.Err()
		}

		return nil
	}
	klog.FromContext(ctx).Info("PodGroups are not defined in this cluster yet; their pods wait until they are")
	go func() {
		if err := wait.PollUntilContextCancel(ctx, time.Second, false, func(context.Context) (bool, error) { return g.served(), nil }); err == nil {
			g.PodGroups.Run(ctx.Done())
		}
	}()

	return nil
}

// served says whether the API server knows PodGroups. An error that says
// nothing about that counts as yes: the informer tries again by itself.
func (g *Index) served() bool {
	list, err := g.Client.Discovery().ServerResourcesForGroupVersion(v2alpha2.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		return true
	}
	for _, r := range list.APIResources {
		if r.Name == "podgroups" {
			return true
		}
	}

	return false
}

// Group returns the PodGroup, or nil.
func (g *Index) Group(key types.NamespacedName) *v2alpha2.PodGroup {
	o, ok, err := g.PodGroups.GetStore().GetByKey(key.String())
	if !ok || err != nil {
		return nil
	}
	pg, _ := o.(*v2alpha2.PodGroup)

	return pg
}

// Exists reports whether there is a PodGroup.
func (g *Index) Exists(key types.NamespacedName) bool { return g.Group(key) != nil }

// Keys are all groups that there are, and those that pods name.
func (g *Index) Keys() []types.NamespacedName {
	names := sets.New(g.PodGroups.GetStore().ListKeys()...)
	for _, informer := range []cache.SharedIndexInformer{g.Pods, g.Succeeded} {
		names.Insert(informer.GetIndexer().ListIndexFuncValues(byGroup)...)
	}
	keys := make([]types.NamespacedName, 0, len(names))
	for name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
	}

	return keys
}

// Read returns the gang as it is now, or why it cannot be used.
func (g *Index) Read(key types.NamespacedName) (*decide.Gang, *decide.Refusal) {
	pg := g.Group(key)
	if pg == nil {
		return nil, decide.NotFound(key)
	}

	gang, why := decide.Read(pg, g.Members(key), g.Rules)
	if gang != nil {
		for _, pod := range gang.Pods {
			if g.IsCommitted(pod.UID) {
				if gang.Unbound == nil {
					gang.Unbound = map[types.UID]bool{}
				}
				gang.Unbound[pod.UID] = true
			}
		}
	}

	return gang, why
}

// Never reports whether the PriorityClass of a group does not preempt.
func (g *Index) Never(pg *v2alpha2.PodGroup) bool {
	if pg.Spec.PriorityClassName == "" {
		return false
	}
	class := g.class(pg)

	return class != nil && class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever
}

// seenClass is a PriorityClass, and when it was deleted.
type seenClass struct {
	class   *schedulingv1.PriorityClass
	deleted time.Time
}

// SeeClass remembers a PriorityClass.
func (g *Index) SeeClass(was, is *schedulingv1.PriorityClass, now time.Time) {
	switch {
	case is != nil:
		g.seenClasses.Store(is.Name, seenClass{class: is})
	case was != nil:
		g.seenClasses.Store(was.Name, seenClass{class: was, deleted: now})
	}
}

// class returns the PriorityClass of a group, nil if there is none. It may have been deleted since
// the group was created, and since this process began. A group that is created later does not get
// the priority of a deleted class.
func (g *Index) class(pg *v2alpha2.PodGroup) *schedulingv1.PriorityClass {
	name := pg.Spec.PriorityClassName
	if class, err := g.Classes.Get(name); err == nil {
		return class
	}
	last, _ := g.seenClasses.Load(name)
	seen, ok := last.(seenClass)
	if !ok || !seen.deleted.IsZero() && !pg.CreationTimestamp.Time.Before(seen.deleted) {
		return nil
	}

	return seen.class
}

// Priority is that of the class that the group names, or else the lowest of its pods: one
// important pod must not lift the others.
func (g *Index) Priority(pg *v2alpha2.PodGroup, pods []*corev1.Pod) int32 {
	if pg.Spec.PriorityClassName != "" {
		if class := g.class(pg); class != nil {
			return class.Value
		}
	}
	var lowest int32
	for i, pod := range pods {
		if p := corev1helpers.PodPriority(pod); i == 0 || p < lowest {
			lowest = p
		}
	}

	return lowest
}
