package scheduler

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
)

// errNoNodes says that there is nothing to place pods on.
var errNoNodes = errors.New("there are no nodes")

// As kube-scheduler does in large clusters: enough nodes are enough.
const (
	enoughNodes      = 100
	adaptivePercent  = 50
	adaptiveStep     = 125
	leastPercent     = 5
	wholePercent     = 100
	filterOperation  = "Filter"
	reasonUnselected = "node(s) didn't satisfy the pod's own choice"
)

// A fitter finds the best node for one pod. It asks the same plugins as
// kube-scheduler in the same order, and differs in one thing: the same pods in
// the same cluster always get the same nodes. kube-scheduler throws dice between
// nodes of equal score, and looks at nodes in the order in which it heard of
// them; a question asked first could not be answered truly.
type fitter struct {
	fw       framework.Framework
	snapshot *internalcache.Snapshot

	// nodes are those of the snapshot, whose list starts at source, by name.
	nodes  []fwk.NodeInfo
	source *fwk.NodeInfo
	// begin is where the next search starts, modulo the number of nodes.
	begin int
}

// startOf is where the search for a gang starts. Each has a place of its own, so that
// in a large cluster the first nodes are not filled first and then passed by all
// who come later; it depends on nothing but the name, which a question has too.
func startOf(group *v2alpha2.PodGroup) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(group.Namespace + "/" + group.Name))

	return int(h.Sum32() >> 1) // not negative, wherever an int has 32 bits
}

// choose returns the node's name, or a FitError, or errNoNodes.
func (f *fitter) choose(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (string, error) {
	if err := f.list(); err != nil {
		return "", err
	}
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	feasible, err := f.filter(ctx, state, pod, &diagnosis)
	if err != nil {
		return "", err
	}
	switch len(feasible) {
	case 0:
		return "", &framework.FitError{Pod: pod, NumAllNodes: len(f.nodes), Diagnosis: diagnosis}
	case 1:
		return feasible[0].Node().Name, nil
	default:
		return f.best(ctx, state, pod, feasible)
	}
}

// list reads the nodes of the snapshot. Their values change with it, so they
// are read anew only when it has another list.
func (f *fitter) list() error {
	all, err := f.snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errNoNodes
	}
	if f.source != &all[0] {
		f.source = &all[0]
		f.nodes = slices.SortedFunc(slices.Values(all), func(a, b fwk.NodeInfo) int { return cmp.Compare(a.Node().Name, b.Node().Name) })
	}

	return nil
}

func (f *fitter) filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, diagnosis *framework.Diagnosis) ([]fwk.NodeInfo, error) {
	narrowed, status, plugins := f.fw.RunPreFilterPlugins(ctx, state, pod)
	diagnosis.UnschedulablePlugins = plugins
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, status.AsError()
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.AddPluginStatus(status)

		return nil, nil
	}
	nodes, begin := f.nodes, f.begin%len(f.nodes)
	if name := pod.Status.NominatedNodeName; name != "" {
		if found, err := f.nominated(ctx, state, pod, name); err != nil || found != nil {
			return found, err
		}
	}
	if !narrowed.AllNodes() {
		nodes, begin = f.only(narrowed.NodeNames), 0
		diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasonUnselected))
	}
	feasible, seen, err := f.search(ctx, state, pod, nodes, begin, diagnosis)
	if narrowed.AllNodes() {
		f.begin = (begin + seen) % len(nodes)
	}

	return feasible, err
}

// nominated looks at the node first that was made free for the pod.
func (f *fitter) nominated(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, name string) ([]fwk.NodeInfo, error) {
	node, err := f.snapshot.NodeInfos().Get(name)
	if err != nil {
		return nil, nil //nolint:nilerr // the node has gone; there are others
	}
	status := f.fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	switch {
	case status.IsSuccess():
		return []fwk.NodeInfo{node}, nil
	case status.IsRejected():
		return nil, nil
	default:
		return nil, status.AsError()
	}
}

func (f *fitter) only(names sets.Set[string]) []fwk.NodeInfo {
	var nodes []fwk.NodeInfo
	for _, node := range f.nodes {
		if names.Has(node.Node().Name) {
			nodes = append(nodes, node)
		}
	}

	return nodes
}

// search runs the filters, in parallel and in blocks, so that what is found
// does not depend on which goroutine is faster. It stops when there are enough
// nodes to choose from.
func (f *fitter) search(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, begin int, diagnosis *framework.Diagnosis) ([]fwk.NodeInfo, int, error) {
	enough := enough(f.fw.PercentageOfNodesToScore(), len(nodes))
	var feasible []fwk.NodeInfo
	for seen := 0; seen < len(nodes); {
		block := min(len(nodes)-seen, enough-len(feasible))
		statuses, err := f.ask(ctx, state, pod, block, func(i int) fwk.NodeInfo { return nodes[(begin+seen+i)%len(nodes)] })
		if err != nil {
			return nil, seen, err
		}
		for i, status := range statuses {
			node := nodes[(begin+seen+i)%len(nodes)]
			if status.IsSuccess() {
				feasible = append(feasible, node)

				continue
			}
			diagnosis.NodeToStatus.Set(node.Node().Name, status)
			diagnosis.AddPluginStatus(status)
		}
		seen += block
		if len(feasible) >= enough {
			return feasible, seen, nil
		}
	}

	return feasible, len(nodes), nil
}

// ask runs the filters on n nodes.
func (f *fitter) ask(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, n int, node func(int) fwk.NodeInfo) ([]*fwk.Status, error) {
	statuses := make([]*fwk.Status, n)
	var failed atomic.Pointer[fwk.Status]
	f.fw.Parallelizer().Until(ctx, n, func(i int) {
		statuses[i] = f.fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, node(i))
		if statuses[i].Code() == fwk.Error {
			failed.CompareAndSwap(nil, statuses[i])
		}
	}, filterOperation)
	if s := failed.Load(); s != nil {
		return nil, s.AsError()
	}

	return statuses, ctx.Err()
}

// best returns the node of the highest score, of several the first by name.
func (f *fitter) best(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (string, error) {
	if !f.fw.HasScorePlugins() {
		return nodes[0].Node().Name, nil
	}
	if status := f.fw.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return "", status.AsError()
	}
	scores, status := f.fw.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return "", status.AsError()
	}
	top := slices.MinFunc(scores, func(a, b fwk.NodePluginScores) int {
		return cmp.Or(cmp.Compare(b.TotalScore, a.TotalScore), cmp.Compare(a.Name, b.Name))
	})

	return top.Name, nil
}

// enough is how many feasible nodes are enough.
func enough(percent *int32, nodes int) int {
	if nodes < enoughNodes {
		return nodes
	}
	share := 0
	if percent != nil {
		share = int(*percent)
	}
	if share == 0 {
		share = max(leastPercent, adaptivePercent-nodes/adaptiveStep)
	}

	return max(enoughNodes, nodes*share/wholePercent)
}
