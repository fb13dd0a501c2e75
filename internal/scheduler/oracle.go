package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	config "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/engine/gang"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// An Oracle answers what the scheduler would do with a gang, and changes
// nothing. It decides with the scheduler's own code on a copy of the cluster.
type Oracle struct {
	trial   *trial
	factory informers.SharedInformerFactory
	groups  *groups
	rules   gang.Rules
}

// Open reads a cluster. file is the configuration of the scheduler, if it has
// one; pods must then ask for one of its profiles. Without, whichever scheduler
// they ask for, they are told what this one would do. It ends with ctx.
func Open(ctx context.Context, source *rest.Config, o Options, file string) (*Oracle, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	cfg, err := configuration(ctx, o, file)
	if err != nil {
		return nil, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	source = rest.CopyConfig(source)
	source.QPS = -1
	var complete atomic.Bool
	source.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &impatient{next: next, fail: fail, complete: &complete}
	})
	client, err := clientset.NewForConfig(source)
	if err != nil {
		return nil, err
	}
	factory := kubescheduler.NewInformerFactory(client, 0)
	s := &Scheduler{options: &o, rules: o.rules()}
	if s.groups, err = newGroups(source, client, factory, s.rules); err != nil {
		return nil, err
	}
	if s.trial, err = newTrial(ctx, client, source, factory, cfg, s.plugins()); err != nil {
		return nil, err
	}
	if file == "" {
		s.trial.anyone = s.trial.profiles[o.Names[0]]
	}
	factory.Start(ctx.Done())
	for _, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, context.Cause(ctx)
		}
	}
	if err := s.groups.start(ctx); err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	complete.Store(true)
	oracle := &Oracle{trial: s.trial, factory: factory, groups: s.groups, rules: s.rules}
	s.trial.nominees.of = oracle.nominated

	return oracle, nil
}

// configuration is the file, or the default with a profile for each name.
func configuration(ctx context.Context, o Options, file string) (*config.KubeSchedulerConfiguration, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, err
	}
	if file != "" {
		if cfg, err = options.LoadConfigFromFile(klog.FromContext(ctx), file); err != nil {
			return nil, fmt.Errorf("cannot read the scheduler's configuration: %w", err)
		}
	} else {
		cfg.Profiles = named(cfg.Profiles[0], o.Names)
	}
	for i := range cfg.Profiles {
		enable(&cfg.Profiles[i])
	}

	return cfg, nil
}

// nominated returns the pods that are nominated to a node, those of gangs that have
// reserved their room with the priority of the gang.
func (o *Oracle) nominated(node string, trying *types.NamespacedName) []fwk.PodInfo {
	var infos []fwk.PodInfo
	for _, item := range o.groups.pods.GetStore().List() {
		pod, ok := item.(*corev1.Pod)
		if !ok || pod.Spec.NodeName != "" || pod.Status.NominatedNodeName != node {
			continue
		}
		if key, ok := decide.GroupOf(pod); ok {
			if trying != nil && key == *trying {
				continue
			}
			if pg := o.groups.group(key); pg != nil && isReserved(pg) {
				pod = withPriority(pod, o.groups.priority(pg, o.groups.members(key)))
			}
		}
		infos = append(infos, podInfo(pod))
	}

	return infos
}

// isReserved reports whether a PodGroup has the record of a reservation that is about
// its present spec.
func isReserved(pg *v2alpha2.PodGroup) bool {
	r, err := recordOf(pg)

	return err == nil && r != nil && r.Generation == pg.Generation
}

// Group returns a PodGroup of the cluster with the pods that name it.
func (o *Oracle) Group(key types.NamespacedName) (*v2alpha2.PodGroup, []*corev1.Pod) {
	return o.groups.group(key), o.groups.members(key)
}

// Groups names the PodGroups of the cluster.
func (o *Oracle) Groups() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, item := range o.groups.all.GetStore().List() {
		if pg, ok := item.(*v2alpha2.PodGroup); ok {
			keys = append(keys, types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name})
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})

	return keys
}

// Priority is that of a class, or what pods have that name none. It is false
// for a class that the cluster does not have.
func (o *Oracle) Priority(class string) (int32, bool) {
	if class != "" {
		c, err := o.groups.classes.Get(class)
		if err != nil {
			return 0, false
		}

		return c.Value, true
	}
	all, err := o.groups.classes.List(labels.Everything())
	if err != nil {
		return 0, false
	}
	for _, c := range all {
		if c.GlobalDefault {
			return c.Value, true
		}
	}

	return 0, true
}

// Fit says what would become of a group and its pods if they were there now.
func (o *Oracle) Fit(ctx context.Context, pg *v2alpha2.PodGroup, pods []*corev1.Pod) (*decide.Answer, error) {
	g, why := decide.Read(pg, pods, o.rules)
	if why != nil {
		return &decide.Answer{Refusal: why}, nil
	}
	done, err := o.trial.open(ctx, func(pod *corev1.Pod) *corev1.Pod { return pod })
	if err != nil {
		return nil, err
	}
	defer done()
	o.trial.nominees.trying = &types.NamespacedName{Namespace: pg.Namespace, Name: pg.Name}
	answer := &decide.Answer{Gang: g, For: -1}
	if answer.Decision, err = o.trial.place(ctx, g, o.groups.priority(pg, pods)); err != nil {
		return nil, err
	}
	answer.For = without(g, &answer.Decision)
	if answer.For >= 0 {
		answer.Rooms, err = o.trial.rooms(ctx, g, answer.For)
	}

	return answer, err
}

// without returns the first member that has found no place, of the subgroup
// that stands in the way if there is one.
func without(g *decide.Gang, d *gang.Decision) int {
	placed := map[int]bool{}
	for _, p := range d.Places {
		placed[p.Member] = true
	}
	leaf := d.Blocker
	for leaf >= 0 && d.Nodes[leaf].Blocker >= 0 {
		leaf = d.Nodes[leaf].Blocker
	}
	first := -1
	for i, m := range g.Members {
		if m.State != gang.Waiting || placed[i] {
			continue
		}
		if m.Leaf == leaf {
			return i
		}
		if first < 0 {
			first = i
		}
	}

	return first
}

// rooms looks at every node with the eyes of one pod. Those come first that
// lack the least.
func (t *trial) rooms(ctx context.Context, g *decide.Gang, member int) ([]decide.Room, error) {
	fw, err := t.profile(g)
	if err != nil {
		return nil, err
	}
	pod := g.Pods[member]
	if err := t.cache.UpdateSnapshot(klog.FromContext(ctx), t.snapshot); err != nil {
		return nil, err
	}
	nodes, err := t.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	narrowed, status, _ := fw.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	rooms := make([]decide.Room, 0, len(nodes))
	for _, node := range nodes {
		r := decide.Room{Node: node.Node().Name}
		switch {
		case status.IsRejected():
			r.Reasons = status.Reasons()
		case !narrowed.AllNodes() && !narrowed.NodeNames.Has(r.Node):
			r.Reasons = []string{reasonUnselected}
		default:
			look(ctx, fw, state, pod, node, &r)
		}
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b decide.Room) int {
		return cmp.Or(cmp.Compare(b.Fits, a.Fits), cmp.Compare(len(a.Reasons), len(b.Reasons)), cmp.Compare(missing(a), missing(b)), cmp.Compare(a.Node, b.Node))
	})

	return rooms, nil
}

// look fills in one node.
func look(ctx context.Context, fw framework.Framework, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, r *decide.Room) {
	insufficient := map[string]bool{}
	for _, lack := range noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true}) {
		insufficient[lack.Reason] = true
		r.Short = append(r.Short, decide.Shortage{Resource: string(lack.ResourceName), Asked: lack.Requested, Free: lack.Capacity - lack.Used, Allocatable: lack.Capacity})
	}
	if status := fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, node); !status.IsSuccess() {
		for _, reason := range status.Reasons() {
			if !insufficient[reason] {
				r.Reasons = append(r.Reasons, reason)
			}
		}

		return
	}
	r.Fits = times(pod, node)
}

// times is how often a pod fits a node that takes it, by its resources.
func times(pod *corev1.Pod, node fwk.NodeInfo) int {
	room := node.GetAllocatable().GetAllowedPodNumber() - len(node.GetPods())
	asked := framework.NewResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	free := func(ask, allocatable, used int64) {
		if ask > 0 {
			room = min(room, int((allocatable-used)/ask))
		}
	}
	has, used := node.GetAllocatable(), node.GetRequested()
	free(asked.MilliCPU, has.GetMilliCPU(), used.GetMilliCPU())
	free(asked.Memory, has.GetMemory(), used.GetMemory())
	free(asked.EphemeralStorage, has.GetEphemeralStorage(), used.GetEphemeralStorage())
	for name, ask := range asked.ScalarResources {
		free(ask, has.GetScalarResources()[name], used.GetScalarResources()[name])
	}

	return max(0, room)
}

// missing is how much a node lacks, as a share of what is asked for.
func missing(r decide.Room) float64 {
	total := 0.0
	for _, s := range r.Short {
		total += 1 - float64(max(0, s.Free))/float64(max(1, s.Asked))
	}

	return total
}
