package placement

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

// errOutdatedMemo says that no node that was remembered fits any more.
var errOutdatedMemo = errors.New("no node that was remembered fits any more")

// As kube-scheduler does in large clusters: enough nodes are enough.
const (
	enoughNodes      = 100
	adaptivePercent  = 50
	adaptiveStep     = 125
	leastPercent     = 5
	wholePercent     = 100
	FilterOperation  = "Filter"
	reasonUnselected = "node(s) didn't satisfy the pod's own choice"
)

// A Fitter finds the best node for one pod. It asks the same plugins as
// kube-scheduler in the same order, and differs in one thing: the same pods in
// the same cluster always get the same nodes. kube-scheduler throws dice between
// nodes of equal score, and looks at nodes in the order in which it heard of
// them; a question asked first could not be answered truly.
type Fitter struct {
	fw       framework.Framework
	snapshot *internalcache.Snapshot
	// percent is the percentageOfNodesToScore of profiles that have none.
	percent int32

	// nodes are those of the snapshot, whose list starts at source, by name, and
	// position has where each of them is.
	nodes    []fwk.NodeInfo
	source   *fwk.NodeInfo
	position map[string]int
	// memos may be nil: then nothing is remembered.
	memos *memos
	// reserved reports whether room is reserved on a node: what filters say about it
	// depends on who asks then. It is needed with memos only.
	reserved func(node string) bool
	// begin is where the next search starts, modulo the number of nodes.
	begin int
}

// NewFitter returns a fitter that remembers what plugins said. reserved reports whether room
// is reserved on a node.
func NewFitter(fw framework.Framework, snapshot *internalcache.Snapshot, percent int32, reserved func(node string) bool) *Fitter {
	return &Fitter{fw: fw, snapshot: snapshot, percent: percent, memos: newMemos(fw), reserved: reserved}
}

// Selective reports whether a pod of the snapshot keeps pods of a namespace away by
// their labels.
func Selective(snapshot *internalcache.Snapshot, namespace string) bool {
	nodes, err := snapshot.NodeInfos().HavePodsWithRequiredAntiAffinityList()
	if err != nil {
		return true
	}
	for _, node := range nodes {
		for _, pod := range node.GetPodsWithRequiredAntiAffinity() {
			for _, term := range pod.GetRequiredAntiAffinityTerms() {
				if _, selects := term.NamespaceSelector.Requirements(); selects || term.Namespaces.Has(namespace) {
					return true
				}
			}
		}
	}

	return false
}

// startOf is where the search for a gang starts. Each has a place of its own, so that
// in a large cluster the first nodes are not filled first and then passed by all
// who come later; it depends on nothing but the name, which a question has too.
func startOf(group *v2alpha2.PodGroup) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(group.Namespace + "/" + group.Name))

	return int(h.Sum32() >> 1) // not negative, wherever an int has 32 bits
}

// choose returns the node's name, or a FitError, or errNoNodes. The preferred node, if
// there is one, is taken if the pod fits there.
func (f *Fitter) choose(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, shape, preferred string) (string, error) {
	if err := f.list(); err != nil {
		return "", err
	}
	for begin := f.begin; ; f.begin = begin {
		diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
		feasible, m, err := f.filter(ctx, state, pod, shape, preferred, &diagnosis)
		switch {
		case err != nil:
			return "", err
		case len(feasible) == 0:
			return "", &framework.FitError{Pod: pod, NumAllNodes: len(f.nodes), Diagnosis: diagnosis}
		case len(feasible) == 1 && m == nil:
			return f.name(feasible[0]), nil
		}
		name, err := f.best(ctx, state, pod, m, feasible)
		if !errors.Is(err, errOutdatedMemo) { // what was outdated is asked again the next time
			return name, err
		}
	}
}

// name returns the name of the node at a position.
func (f *Fitter) name(at int) string { return f.nodes[at].Node().Name }

// list reads the nodes of the snapshot. Their values change with it, so they
// are read anew only when it has another list.
func (f *Fitter) list() error {
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
		f.position = make(map[string]int, len(f.nodes))
		for i := range f.nodes {
			f.position[f.name(i)] = i
		}
	}

	return nil
}

// filter returns the positions of nodes that the pod fits, and the memo of its shape if
// it has one.
func (f *Fitter) filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, shape, preferred string, diagnosis *framework.Diagnosis) ([]int, *memo, error) {
	narrowed, status, plugins := f.fw.RunPreFilterPlugins(ctx, state, pod)
	diagnosis.UnschedulablePlugins = plugins
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, nil, status.AsError()
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
		diagnosis.AddPluginStatus(status)

		return nil, nil, nil
	}
	if preferred != "" && (narrowed.AllNodes() || narrowed.NodeNames.Has(preferred)) {
		if found, err := f.nominated(ctx, state, pod, preferred); err != nil || found != nil {
			return found, nil, err
		}
	}
	if !narrowed.AllNodes() {
		diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reasonUnselected))
		feasible, _, err := f.search(ctx, state, pod, nil, f.only(narrowed.NodeNames), diagnosis)

		return feasible, nil, err
	}
	begin := f.begin % len(f.nodes)
	order := make([]int, len(f.nodes))
	for i := range order {
		order[i] = (begin + i) % len(order)
	}
	m := f.memos.get(shape, state, f)
	feasible, seen, err := f.search(ctx, state, pod, m, order, diagnosis)
	f.begin = (begin + seen) % len(f.nodes)

	return feasible, m, err
}

// nominated tries the node first that is reserved for the pod, or nominated.
func (f *Fitter) nominated(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, name string) ([]int, error) {
	at, ok := f.position[name]
	if !ok {
		return nil, nil // the node no longer exists
	}
	status := f.fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, f.nodes[at])
	switch {
	case status.IsSuccess():
		return []int{at}, nil
	case status.IsRejected():
		return nil, nil
	default:
		return nil, status.AsError()
	}
}

func (f *Fitter) only(names sets.Set[string]) []int {
	var nodes []int
	for i := range f.nodes {
		if names.Has(f.name(i)) {
			nodes = append(nodes, i)
		}
	}

	return nodes
}

// search runs the filters, in parallel and in blocks, so that what is found does not
// depend on which goroutine is faster. It stops when there are enough nodes to choose
// from, and returns how many it has seen.
func (f *Fitter) search(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *memo, order []int, diagnosis *framework.Diagnosis) ([]int, int, error) {
	percent := f.percent
	if own := f.fw.PercentageOfNodesToScore(); own != nil {
		percent = *own
	}
	enough := enoughOf(percent, len(order))
	var feasible []int
	for seen := 0; seen < len(order); {
		block := order[seen:min(len(order), seen+enough-len(feasible))]
		statuses, err := f.statuses(ctx, state, pod, m, block)
		if err != nil {
			return nil, seen, err
		}
		for i, status := range statuses {
			if status.IsSuccess() {
				feasible = append(feasible, block[i])

				continue
			}
			diagnosis.NodeToStatus.Set(f.name(block[i]), status)
			diagnosis.AddPluginStatus(status)
		}
		seen += len(block)
		if len(feasible) >= enough {
			return feasible, seen, nil
		}
	}

	return feasible, len(order), nil
}

// ask runs the filters on n nodes.
func (f *Fitter) ask(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, n int, node func(int) fwk.NodeInfo) ([]*fwk.Status, error) {
	statuses := make([]*fwk.Status, n)
	var failed atomic.Pointer[fwk.Status]
	f.fw.Parallelizer().Until(ctx, n, func(i int) {
		statuses[i] = f.fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, node(i))
		if statuses[i].Code() == fwk.Error {
			failed.CompareAndSwap(nil, statuses[i])
		}
	}, FilterOperation)
	if s := failed.Load(); s != nil {
		return nil, s.AsError()
	}

	return statuses, ctx.Err()
}

// best returns the node of the highest score, of several the first by name. A node that
// was only remembered is asked again, because another pod may have been nominated to
// it.
func (f *Fitter) best(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *memo, feasible []int) (string, error) {
	totals, err := f.totals(ctx, state, pod, m, feasible)
	if err != nil {
		return "", err
	}
	for {
		top := highest(feasible, totals)
		if top < 0 {
			return "", errOutdatedMemo
		}
		if m == nil {
			return f.name(feasible[top]), nil
		}
		at := feasible[top]
		status := f.fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, f.nodes[at])
		switch {
		case status.IsSuccess():
			return f.name(at), nil
		case !status.IsRejected():
			return "", status.AsError()
		}
		m.entries[at].filtered, totals[top] = false, -1
	}
}

// totals returns the score of each node. Without score plugins, the first node is the best.
func (f *Fitter) totals(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *memo, feasible []int) ([]int64, error) {
	if f.fw.HasScorePlugins() {
		return f.scoresOf(ctx, state, pod, m, feasible)
	}
	totals := make([]int64, len(feasible))
	for i := range totals {
		totals[i] = int64(len(feasible) - i)
	}

	return totals, nil
}

// highest returns the index of the highest total, of several the one of the first node.
// Negative totals do not count. It is -1 if there is none.
func highest(feasible []int, totals []int64) int {
	top := -1
	for i, at := range feasible {
		if totals[i] >= 0 && (top < 0 || totals[i] > totals[top] || totals[i] == totals[top] && at < feasible[top]) {
			top = i
		}
	}

	return top
}

// enoughOf returns how many feasible nodes are enough.
func enoughOf(percent int32, nodes int) int {
	if nodes < enoughNodes {
		return nodes
	}
	share := int(percent)
	if share == 0 {
		share = max(leastPercent, adaptivePercent-nodes/adaptiveStep)
	}

	return max(enoughNodes, nodes*share/wholePercent)
}
