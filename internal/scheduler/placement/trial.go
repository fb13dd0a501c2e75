package placement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/profiles"
)

// A Trial is a cluster in memory in which things can be tried. It has a cache,
// a snapshot and plugins of its own, which read the same informers, so that what
// it does is seen by nobody. It takes one question at a time.
type Trial struct {
	mu       sync.Mutex
	Profiles profile.Map
	Snapshot *internalcache.Snapshot
	Cache    internalcache.Cache
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	nominees *nominees
	percent  int32 // percentageOfNodesToScore of profiles that have none
	FitArgs  map[string]*config.NodeResourcesFitArgs
	// anyone is for pods that ask for none of the profiles; nil refuses them.
	anyone framework.Framework

	// What is in the cache now.
	inNodes map[string]*corev1.Node
	inPods  map[types.UID]*corev1.Pod
}

// NewTrial makes a cluster in memory of what the informers of a factory read. ours are the plugins
// that profiles have beyond those of kube-scheduler.
func NewTrial(ctx context.Context, client clientset.Interface, kubeConfig *rest.Config, factory informers.SharedInformerFactory, cfg *config.KubeSchedulerConfiguration, ours frameworkruntime.Registry) (*Trial, error) {
	registry := frameworkplugins.NewInTreeRegistry()
	if err := registry.Merge(ours); err != nil {
		return nil, err
	}
	// A cache whose context has ended does not export metrics: those are of the
	// cluster, and this is not it.
	ended, end := context.WithCancel(ctx)
	end()
	t := &Trial{
		Snapshot: internalcache.NewEmptySnapshot(),
		Cache:    internalcache.New(ended, nil, false),
		pods:     factory.Core().V1().Pods().Lister(),
		nodes:    factory.Core().V1().Nodes().Lister(),
		percent:  profiles.PercentOf(cfg),
		FitArgs:  profiles.FitArgs(cfg),
		nominees: &nominees{gone: sets.New[types.UID]()},
		inNodes:  map[string]*corev1.Node{},
		inPods:   map[types.UID]*corev1.Pod{},
	}
	claims, err := privateClaims(ctx, client, factory)
	if err != nil {
		return nil, err
	}
	metrics.Register()
	t.Profiles, err = profile.NewMap(ctx, cfg.Profiles, registry,
		func(string) events.EventRecorderLogger { return silent{} },
		frameworkruntime.WithComponentConfigVersion(cfg.APIVersion),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithKubeConfig(kubeConfig),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(claims),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(t.Snapshot),
		frameworkruntime.WithParallelism(int(cfg.Parallelism)),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done())),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithPodGroupManager(t.Cache),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot make the plugins of trials: %w", err)
	}
	for _, fw := range t.Profiles {
		fw.SetPodNominator(t.nominees)
	}

	return t, nil
}

// privateClaims keeps what is reserved in a trial out of the true one.
func privateClaims(ctx context.Context, client clientset.Interface, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices(), KubeClient: client})
	if err != nil {
		return nil, fmt.Errorf("cannot follow ResourceSlices: %w", err)
	}

	return dynamicresources.NewDRAManager(ctx, claims, slices, factory), nil
}

// Open makes the cluster in memory that of now, and keeps others out until done
// is called. placed tells the place of pods that the API server does not know of
// yet.
func (t *Trial) Open(ctx context.Context, placed func(*corev1.Pod) *corev1.Pod) (done func(), err error) {
	t.mu.Lock()
	opened := false
	defer func() { // also after a panic, or no search could begin any more
		if !opened {
			t.mu.Unlock()
		}
	}()
	t.nominees.gone, t.nominees.trying = sets.New[types.UID](), nil
	if err := t.syncNodes(ctx); err != nil {
		return nil, err
	}
	if err := t.syncPods(ctx, placed); err != nil {
		return nil, err
	}
	opened = true

	return t.mu.Unlock, nil
}

func (t *Trial) syncNodes(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	nodes, err := t.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	gone := sets.KeySet(t.inNodes)
	for _, node := range nodes {
		gone.Delete(node.Name)
		switch had := t.inNodes[node.Name]; had {
		case node:
			continue
		case nil:
			t.Cache.AddNode(logger, node)
		default:
			t.Cache.UpdateNode(logger, had, node)
		}
		t.inNodes[node.Name] = node
	}
	for name := range gone {
		if err := t.Cache.RemoveNode(logger, t.inNodes[name]); err != nil {
			return err
		}
		delete(t.inNodes, name)
	}

	return nil
}

func (t *Trial) syncPods(ctx context.Context, placed func(*corev1.Pod) *corev1.Pod) error {
	pods, err := t.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	gone := sets.KeySet(t.inPods)
	for _, pod := range pods {
		pod = placed(pod)
		if pod.Spec.NodeName == "" {
			continue
		}
		gone.Delete(pod.UID)
		if err := t.replace(ctx, t.inPods[pod.UID], pod); err != nil {
			return err
		}
	}
	for uid := range gone {
		if err := t.Remove(ctx, t.inPods[uid]); err != nil {
			return err
		}
	}

	return nil
}

// replace has a pod in the cache as it is now.
func (t *Trial) replace(ctx context.Context, had, pod *corev1.Pod) error {
	if had != nil && had.ResourceVersion == pod.ResourceVersion && had.Spec.NodeName == pod.Spec.NodeName {
		return nil
	}
	if had != nil {
		if err := t.Remove(ctx, had); err != nil {
			return err
		}
	}

	return t.Add(ctx, pod)
}

// Add puts a pod into the cluster in memory, until the next question. That
// one finds the cluster as it is.
func (t *Trial) Add(ctx context.Context, pod *corev1.Pod) error {
	t.inPods[pod.UID] = pod

	return t.Cache.AddPod(klog.FromContext(ctx), pod)
}

// Remove takes a pod from the cluster in memory.
func (t *Trial) Remove(ctx context.Context, pod *corev1.Pod) error {
	delete(t.inPods, pod.UID)

	return t.Cache.RemovePod(klog.FromContext(ctx), pod)
}

// NodesFor returns the plugins and the nodes of the cluster in memory that a gang is tried
// with.
func (t *Trial) NodesFor(ctx context.Context, g *decide.Gang) (framework.Framework, []fwk.NodeInfo, error) {
	fw, err := t.profile(g)
	if err != nil {
		return nil, nil, err
	}
	if err := t.Cache.UpdateSnapshot(klog.FromContext(ctx), t.Snapshot); err != nil {
		return nil, nil, err
	}
	nodes, err := t.Snapshot.NodeInfos().List()
	if err != nil {
		return nil, nil, err
	}
	g.Compare(Selective(t.Snapshot, g.Group.Namespace))

	return fw, nodes, nil
}

// SetNominated has nominated return the pods that are nominated to a node. The places of the
// gang that is being tried are left out.
func (t *Trial) SetNominated(nominated func(node string, trying *types.NamespacedName) []fwk.PodInfo) {
	t.nominees.of = nominated
}

// About sets the gang that a question is about, until the next one.
func (t *Trial) About(key types.NamespacedName) { t.nominees.trying = &key }

// AnswerAny has a profile answer for pods that ask for none of the profiles.
func (t *Trial) AnswerAny(name string) { t.anyone = t.Profiles[name] }

// Place tries a gang and leaves everything as it was. Members that wait must
// have a scheduler that this one answers for.
func (t *Trial) Place(ctx context.Context, g *decide.Gang, priority int32) (gang.Decision, error) {
	fw, err := t.profile(g)
	if err != nil {
		return gang.Decision{}, err
	}
	if err := t.Cache.UpdateSnapshot(klog.FromContext(ctx), t.Snapshot); err != nil {
		return gang.Decision{}, err
	}
	g.Compare(Selective(t.Snapshot, g.Group.Namespace))
	w := NewWorld(ctx, &Fitter{fw: fw, snapshot: t.Snapshot, percent: t.percent}, t.Cache, g.Group, g.Pods, priority)
	decision, err := gang.Place(ctx, g.Tree, g.Members, w, g.Rules)
	w.Rollback(0)

	return decision, err
}

func (t *Trial) profile(g *decide.Gang) (framework.Framework, error) {
	for i, m := range g.Members {
		if m.State != gang.Waiting {
			continue
		}
		fw, ok := t.Profiles[g.Pods[i].Spec.SchedulerName]
		if !ok && t.anyone != nil {
			return t.anyone, nil
		}
		if !ok {
			return nil, fmt.Errorf("pod %s/%s asks for scheduler %q, which is not this one", g.Pods[i].Namespace, g.Pods[i].Name, g.Pods[i].Spec.SchedulerName)
		}

		return fw, nil
	}
	for _, fw := range t.Profiles {
		return fw, nil // nobody waits: any will do
	}

	return nil, errors.New("there is no profile")
}

// nominees are the pods for which room was made. What a trial does to them is
// its own.
type nominees struct {
	of   func(node string, trying *types.NamespacedName) []fwk.PodInfo
	gone sets.Set[types.UID]
	// trying is the gang that the question is about; its places are left out.
	trying *types.NamespacedName
}

var _ fwk.PodNominator = &nominees{}

func (n *nominees) AddNominatedPod(_ klog.Logger, pod fwk.PodInfo, _ *fwk.NominatingInfo) {
	n.gone.Delete(pod.GetPod().UID)
}

func (n *nominees) DeleteNominatedPodIfExists(pod *corev1.Pod) { n.gone.Insert(pod.UID) }

func (n *nominees) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo) {}

func (n *nominees) NominatedPodsForNode(node string) []fwk.PodInfo {
	if n.of == nil {
		return nil
	}
	var pods []fwk.PodInfo
	for _, p := range n.of(node, n.trying) {
		if !n.gone.Has(p.GetPod().UID) {
			pods = append(pods, p)
		}
	}

	return pods
}

// silent is a recorder of events that have not happened.
type silent struct{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
func (s silent) WithLogger(klog.Logger) events.EventRecorderLogger                           { return s }
