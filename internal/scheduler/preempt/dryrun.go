package preempt

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/victims"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/placement"
	"github.com/arbor-control/arbor/internal/scheduler/podinfo"
)

// A dryRun answers where members of a gang pass the filters once some pods are
// gone. It changes copies of the snapshot's nodes and the PreFilter state, as
// kube-scheduler's own preemption does, so neither the snapshot nor the cache is
// touched. It is used by one goroutine.
type dryRun struct {
	ctx   context.Context //nolint:containedctx // a dry run is one call
	fw    framework.Framework
	nodes []fwk.NodeInfo
	index map[string]int
	// changed nodes differ from the snapshot; nil ones do not.
	changed []fwk.NodeInfo
	members []dryMember
	filters []*filterState
	pods    []fwk.PodInfo // that may be evicted
	placeOf []int         // their nodes
	err     error
}

// A dryMember is a member of the gang that looks for a place.
type dryMember struct {
	info   fwk.PodInfo
	filter *filterState
}

// A filterState is the PreFilter state of all members of one shape.
type filterState struct {
	pod      *corev1.Pod
	state    fwk.CycleState
	rejected bool
	only     sets.Set[string] // nodes that PreFilter has left, nil for all
	allowed  sets.Set[string] // nodes that the extenders have left, nil for all
}

// mayUse reports whether PreFilter and the extenders leave a node to the members.
func (f *filterState) mayUse(node string) bool {
	return !f.rejected && (f.only == nil || f.only.Has(node)) && (f.allowed == nil || f.allowed.Has(node))
}

var _ victims.Cluster = &dryRun{}

// newDryRun prepares the members that wait. pods are those that may be evicted.
func newDryRun(ctx context.Context, fw framework.Framework, nodes []fwk.NodeInfo, g *decide.Gang, priority int32) (*dryRun, error) {
	d := &dryRun{
		ctx: ctx, fw: fw, nodes: nodes, index: make(map[string]int, len(nodes)),
		changed: make([]fwk.NodeInfo, len(nodes)), members: make([]dryMember, len(g.Members)),
	}
	for i, node := range nodes {
		d.index[node.Node().Name] = i
	}
	shapes := map[string]*filterState{}
	for i, m := range g.Members {
		if !waits(m) {
			continue
		}
		pod := podinfo.WithPriority(g.Pods[i], priority)
		f := shapes[m.Shape]
		if f == nil || m.Shape == "" {
			var err error
			if f, err = d.prefilter(pod); err != nil {
				return nil, err
			}
			shapes[m.Shape] = f
			d.filters = append(d.filters, f)
		}
		d.members[i] = dryMember{info: podinfo.New(pod), filter: f}
	}

	return d, nil
}

// trialDryRun prepares a dry run on the cluster in memory, for a question about a gang.
func trialDryRun(ctx context.Context, t *placement.Trial, key types.NamespacedName, g *decide.Gang, priority int32) (*dryRun, error) {
	t.About(key)
	fw, nodes, err := t.NodesFor(ctx, g)
	if err != nil {
		return nil, err
	}

	return newDryRun(ctx, fw, nodes, g, priority)
}

func (d *dryRun) prefilter(pod *corev1.Pod) (*filterState, error) {
	f := &filterState{pod: pod, state: framework.NewCycleState()}
	narrowed, status, _ := d.fw.RunPreFilterPlugins(d.ctx, f.state, pod)
	switch {
	case status.IsRejected():
		f.rejected = true
	case !status.IsSuccess():
		return nil, status.AsError()
	case !narrowed.AllNodes():
		f.only = narrowed.NodeNames
	}

	return f, nil
}

// candidate adds a pod that may be evicted and returns its number.
func (d *dryRun) candidate(info fwk.PodInfo, node int) int {
	d.pods = append(d.pods, info)
	d.placeOf = append(d.placeOf, node)

	return len(d.pods) - 1
}

// node returns a node as it is now.
func (d *dryRun) node(i int) fwk.NodeInfo {
	if c := d.changed[i]; c != nil {
		return c
	}

	return d.nodes[i]
}

// Fits reports whether a member passes the filters on a node.
func (d *dryRun) Fits(ctx context.Context, member, node int) (bool, error) {
	if d.err != nil {
		return false, d.err
	}
	f, info := d.members[member].filter, d.node(node)
	if !f.mayUse(info.Node().Name) {
		return false, nil
	}
	status := d.fw.RunFilterPluginsWithNominatedPods(ctx, f.state, d.members[member].info.GetPod(), info)
	if !status.IsSuccess() && !status.IsRejected() {
		return false, status.AsError()
	}

	return status.IsSuccess(), ctx.Err()
}

// FitsAny is Fits for many nodes, side by side.
func (d *dryRun) FitsAny(ctx context.Context, member int, nodes []int) ([]bool, error) {
	fits := make([]bool, len(nodes))
	var failed atomic.Pointer[error]
	d.fw.Parallelizer().Until(ctx, len(nodes), func(i int) {
		ok, err := d.Fits(ctx, member, nodes[i])
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
		fits[i] = ok
	}, placement.FilterOperation)
	if err := failed.Load(); err != nil {
		return nil, *err
	}

	return fits, ctx.Err()
}

// Place puts a member onto a node.
func (d *dryRun) Place(member, node int) { d.add(d.members[member].info, node) }

// Unplace takes it away again.
func (d *dryRun) Unplace(member, node int) { d.remove(d.members[member].info, node) }

// Evict removes a running pod.
func (d *dryRun) Evict(pod int) { d.remove(d.pods[pod], d.placeOf[pod]) }

// Restore puts it back.
func (d *dryRun) Restore(pod int) { d.add(d.pods[pod], d.placeOf[pod]) }

func (d *dryRun) add(info fwk.PodInfo, node int) {
	n := d.copyOf(node)
	n.AddPodInfo(info)
	for _, f := range d.filters {
		if f.rejected {
			continue
		}
		if status := d.fw.RunPreFilterExtensionAddPod(d.ctx, f.state, f.pod, info, n); !status.IsSuccess() {
			d.fail(status.AsError())
		}
	}
}

func (d *dryRun) remove(info fwk.PodInfo, node int) {
	n := d.copyOf(node)
	if err := n.RemovePod(klog.FromContext(d.ctx), info.GetPod()); err != nil {
		d.fail(err)

		return
	}
	for _, f := range d.filters {
		if f.rejected {
			continue
		}
		if status := d.fw.RunPreFilterExtensionRemovePod(d.ctx, f.state, f.pod, info, n); !status.IsSuccess() {
			d.fail(status.AsError())
		}
	}
}

// fail keeps the first error: the next question returns it.
func (d *dryRun) fail(err error) {
	if d.err == nil {
		d.err = fmt.Errorf("dry run of a preemption: %w", err)
	}
}

func (d *dryRun) copyOf(node int) fwk.NodeInfo {
	if d.changed[node] == nil {
		d.changed[node] = d.nodes[node].Snapshot()
	}

	return d.changed[node]
}

// removeTerminating removes the pods that are terminating: their room becomes free
// without an eviction. Those that are overdue may stay, because their node may be
// dead.
func (d *dryRun) removeTerminating(now time.Time) {
	for i, node := range d.nodes {
		for _, info := range node.GetPods() {
			if terminating(info.GetPod(), now) {
				d.remove(info, i)
			}
		}
	}
}

// removeOverdue removes the pods that should have terminated and have not, and returns
// them.
func (d *dryRun) removeOverdue(now time.Time) []*corev1.Pod {
	var pods []*corev1.Pod
	for i, node := range d.nodes {
		for _, info := range node.GetPods() {
			if pod := info.GetPod(); pod.DeletionTimestamp != nil && !terminating(pod, now) {
				d.remove(info, i)
				pods = append(pods, pod)
			}
		}
	}

	return pods
}

// names returns the nodes of places.
func (d *dryRun) names(places []victims.Place) []string {
	var all []string
	for _, place := range places {
		all = append(all, d.nodes[place.Node].Node().Name)
	}

	return all
}

// removeDeleted removes the pods on some nodes that, according to the informer, are gone
// or terminating: the scheduler's cache may be late, above all after a start.
func (d *dryRun) removeDeleted(nodes []string, current func(*corev1.Pod) *corev1.Pod, now time.Time) {
	for name := range sets.New(nodes...) {
		node, ok := d.index[name]
		if !ok {
			continue
		}
		for _, info := range slices.Clone(d.node(node).GetPods()) {
			if is := current(info.GetPod()); is == nil || terminating(is, now) {
				d.remove(info, node)
			}
		}
	}
}

// terminatingOn returns the terminating pods on some nodes: a plan waits for them, too.
func (d *dryRun) terminatingOn(nodes []string, now time.Time) []*corev1.Pod {
	var pods []*corev1.Pod
	for name := range sets.New(nodes...) {
		for _, info := range d.nodes[d.index[name]].GetPods() {
			if terminating(info.GetPod(), now) {
				pods = append(pods, info.GetPod())
			}
		}
	}

	return pods
}

// overdue is how long after its time a terminating pod still counts as one that
// disappears.
const overdue = 30 * time.Second

// terminating reports whether a pod is being deleted and is not overdue.
func terminating(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) <= overdue
}

// removePod removes a victim if it is there and was not removed as terminating.
func (d *dryRun) removePod(pod *corev1.Pod, now time.Time) {
	node, ok := d.index[pod.Spec.NodeName]
	if !ok {
		return
	}
	for _, info := range d.node(node).GetPods() {
		if is := info.GetPod(); is.UID == pod.UID && !terminating(is, now) {
			d.remove(info, node)

			return
		}
	}
}

// verify checks that every pod of a plan passes the filters at its place once the victims
// are gone.
func (d *dryRun) verify(g *decide.Gang, of *plan, current func(*corev1.Pod) *corev1.Pod, now time.Time) error {
	d.removeTerminating(now)
	d.removeDeleted(of.nodes, current, now)
	for _, pod := range of.victims {
		d.removePod(pod, now)
	}

	return d.fitAll(g, of)
}

// fitAll places the pods of a plan one by one, and returns why one of them no longer
// fits.
func (d *dryRun) fitAll(g *decide.Gang, of *plan) error {
	places, err := d.placesOf(g, of)
	if err != nil {
		return err
	}
	for i, place := range places {
		fits, err := d.Fits(d.ctx, place.Member, place.Node)
		if err != nil {
			return err
		}
		if !fits {
			return fmt.Errorf("pod %s does not fit onto node %s any more", of.pods[i].Name, of.nodes[i])
		}
		d.Place(place.Member, place.Node)
	}

	return d.err
}

// placesOf returns the places of a plan, or why one of them does not exist any more.
func (d *dryRun) placesOf(g *decide.Gang, of *plan) ([]victims.Place, error) {
	member := map[types.UID]int{}
	for i, m := range g.Members {
		if waits(m) {
			member[g.Pods[i].UID] = i
		}
	}
	places := make([]victims.Place, len(of.pods))
	for i, pod := range of.pods {
		at, ok := member[pod.UID]
		if !ok {
			return nil, fmt.Errorf("pod %s does not wait any more", pod.Name)
		}
		node, ok := d.index[of.nodes[i]]
		if !ok {
			return nil, fmt.Errorf("node %s does not exist any more", of.nodes[i])
		}
		places[i] = victims.Place{Member: at, Node: node}
	}

	return places, nil
}

// waits reports whether a member looks for a place.
func waits(m gang.Member) bool { return m.State == gang.Waiting }
