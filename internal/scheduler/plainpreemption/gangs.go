package plainpreemption

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/podgroups"
)

type runningGangsKey struct{}

// runningGangs reads each gang at most once per scheduling cycle. Candidate nodes
// are evaluated in parallel, and many of them may have members of one gang.
type runningGangs struct {
	groups *podgroups.Index
	nodes  fwk.NodeInfoLister

	mu   sync.Mutex
	read map[types.NamespacedName]func() *runningGang
}

func newRunningGangs(groups *podgroups.Index, handle fwk.Handle) *runningGangs {
	return &runningGangs{groups: groups, nodes: handle.SnapshotSharedLister().NodeInfos(), read: map[types.NamespacedName]func() *runningGang{}}
}

// A runningGang is a gang as a victim. It does not change.
type runningGang struct {
	*decide.Gang

	priority    int32
	preemptible bool
	// member is the index of a pod in Pods and Members.
	member map[types.UID]int
	// places are the members that the snapshot has, by the same index.
	places []snapshotPod
}

// A snapshotPod is a pod on a node of the snapshot.
type snapshotPod struct {
	pod  fwk.PodInfo
	node fwk.NodeInfo
}

// of returns the gang of a pod, and which member of it the pod is: -1 if it does
// not count any more, because it is being deleted for example. The gang is nil
// for plain pods. A pod whose PodGroup does not exist is one: there is nothing
// that its loss could break.
func (r *runningGangs) of(pod *corev1.Pod) (g *runningGang, member int) {
	key, ok := decide.GroupOf(pod)
	if !ok {
		return nil, -1
	}
	r.mu.Lock()
	read, ok := r.read[key]
	if !ok {
		read = sync.OnceValue(func() *runningGang { return r.load(key) })
		r.read[key] = read
	}
	r.mu.Unlock()
	if g = read(); g == nil {
		return nil, -1
	}
	if i, counts := g.member[pod.UID]; counts {
		return g, i
	}

	return g, -1
}

// priority returns the priority with which a pod is protected: that of its gang.
func (r *runningGangs) priority(pod *corev1.Pod) int32 {
	switch g, member := r.of(pod); {
	case g == nil:
		return corev1helpers.PodPriority(pod)
	case member < 0:
		return r.groups.Priority(g.Group, []*corev1.Pod{pod})
	default:
		return g.priority
	}
}

func (r *runningGangs) load(key types.NamespacedName) *runningGang {
	pg := r.groups.Group(key)
	if pg == nil || pg.DeletionTimestamp != nil {
		return nil
	}
	pods := r.groups.Members(key)
	read, refusal := decide.Read(pg, pods, r.groups.Rules)
	if refusal != nil {
		read = indivisible(pg, pods)
	}
	g := &runningGang{Gang: read, priority: r.groups.Priority(pg, read.Pods), member: make(map[types.UID]int, len(read.Pods))}
	g.preemptible = decide.Preemptible(pg, g.priority)
	for i, pod := range g.Pods {
		g.member[pod.UID] = i
	}
	r.locate(g)

	return g
}

// indivisible returns a gang without a tree, which leaves as a whole. It stands
// for one whose tree is not valid, or has no place for one of the pods: what it
// can lose is not known.
func indivisible(pg *v2alpha2.PodGroup, pods []*corev1.Pod) *decide.Gang {
	return &decide.Gang{Group: pg, Pods: slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil
	})}
}

// locate finds the members in the snapshot.
func (r *runningGangs) locate(g *runningGang) {
	g.places = make([]snapshotPod, len(g.Pods))
	seen := map[string]bool{}
	for _, pod := range g.Pods {
		name := pod.Spec.NodeName
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		node, err := r.nodes.Get(name)
		if err != nil {
			continue
		}
		for _, info := range node.GetPods() {
			if i, ok := g.member[info.GetPod().UID]; ok {
				g.places[i] = snapshotPod{pod: info, node: node}
			}
		}
	}
}
