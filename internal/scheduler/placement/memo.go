package placement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/arbor-control/arbor/internal/scheduler/profiles"
)

// maxMemos bounds how many shapes are remembered. A cluster has few that wait at a
// time.
const maxMemos = 32

// nodeLocal are the plugins whose filter and score of a node depend on that node and
// the pod alone, for pods that have a shape. All others must have skipped the pod, or
// nothing is remembered.
var nodeLocal = sets.New(
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
	names.NodeResourcesFit, names.NodeResourcesBalancedAllocation, names.NodeDeclaredFeatures, names.ImageLocality, profiles.Packing,
	names.VolumeRestrictions, names.NodeVolumeLimits, names.VolumeBinding, names.VolumeZone,
)

// unnormalized are the score plugins whose score of a node does not depend on which
// other nodes are scored.
var unnormalized = sets.New(names.NodeResourcesFit, names.NodeResourcesBalancedAllocation, names.ImageLocality, profiles.Packing)

// memos remember what the filters and scores said about nodes, by the shape of the
// pod, until a node changes. Nodes with reserved room are always asked, because what they
// answer depends on who asks; the filters look at the reserved places of the node that they
// are asked about and of no other. Placing a pod changes one node, so the next pod of its
// shape asks about one node instead of hundreds. What is chosen is the same as
// without them.
type memos struct {
	byShape map[string]*memo
	// filters and scores are the plugins of the profile that are not node-local.
	filters, scores []string
}

// A memo has an entry for each node, in the order of the fitter.
type memo struct {
	source  *fwk.NodeInfo // of the fitter's list of nodes
	entries []memoEntry
	// constant are the scores of plugins that normalize, which must be the same for
	// all nodes: only then a node may be scored alone.
	constant map[string]int64
	varies   bool
}

type memoEntry struct {
	generation int64
	filtered   bool
	scored     bool
	status     *fwk.Status
	score      int64
}

func newMemos(fw framework.Framework) *memos {
	m := &memos{byShape: map[string]*memo{}}
	plugins := fw.ListPlugins()
	for _, p := range plugins.Filter.Enabled {
		if !nodeLocal.Has(p.Name) {
			m.filters = append(m.filters, p.Name)
		}
	}
	for _, p := range plugins.Score.Enabled {
		if !nodeLocal.Has(p.Name) {
			m.scores = append(m.scores, p.Name)
		}
	}

	return m
}

// get returns the memo of a shape, nil if nothing may be remembered about this pod.
func (m *memos) get(shape string, state fwk.CycleState, f *Fitter) *memo {
	if m == nil || shape == "" || !state.GetSkipFilterPlugins().HasAll(m.filters...) {
		return nil
	}
	found := m.byShape[shape]
	if found == nil || found.source != f.source {
		if len(m.byShape) >= maxMemos {
			clear(m.byShape)
		}
		found = &memo{source: f.source, entries: make([]memoEntry, len(f.nodes))}
		m.byShape[shape] = found
	}

	return found
}

// at returns the entry of a node, empty if the node has changed.
func (m *memo) at(i int, node fwk.NodeInfo) *memoEntry {
	e := &m.entries[i]
	if e.generation != node.GetGeneration() {
		*e = memoEntry{generation: node.GetGeneration()}
	}

	return e
}

// statuses answers for a run of nodes and asks the plugins about those that it does
// not know. indexes are positions in the fitter's list.
func (f *Fitter) statuses(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *memo, indexes []int) ([]*fwk.Status, error) {
	if m == nil {
		return f.ask(ctx, state, pod, len(indexes), func(i int) fwk.NodeInfo { return f.nodes[indexes[i]] })
	}
	all := make([]*fwk.Status, len(indexes))
	var unknown []int
	for i, at := range indexes {
		if e := m.at(at, f.nodes[at]); e.filtered && !f.reserved(f.name(at)) {
			all[i] = e.status
		} else {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return all, nil
	}
	// A nomination or a reservation may disappear without a change of the node, also while
	// the plugins are asked.
	clean := func(i int) bool {
		name := f.name(indexes[unknown[i]])

		return !f.reserved(name) && len(f.fw.NominatedPodsForNode(name)) == 0
	}
	before := make([]bool, len(unknown))
	for i := range unknown {
		before[i] = clean(i)
	}
	asked, err := f.ask(ctx, state, pod, len(unknown), func(i int) fwk.NodeInfo { return f.nodes[indexes[unknown[i]]] })
	if err != nil {
		return nil, err
	}
	for i, status := range asked {
		at := indexes[unknown[i]]
		all[unknown[i]] = status
		e := &m.entries[at]
		e.filtered, e.status = before[i] && clean(i), status
	}

	return all, nil
}

// scoresOf returns the total score of each node. indexes are positions in the
// fitter's list.
func (f *Fitter) scoresOf(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *memo, indexes []int) ([]int64, error) {
	if m != nil && !m.varies {
		totals, err := f.remembered(ctx, state, pod, m, indexes)
		if err != nil || totals != nil {
			return totals, err
		}
	}
	scores, err := f.score(ctx, state, pod, indexes)
	if err != nil {
		return nil, err
	}
	totals := make([]int64, len(scores))
	for i := range scores {
		totals[i] = scores[i].TotalScore
	}

	return totals, nil
}

// remembered scores the nodes that have no score yet. It returns nil if nodes cannot
// be scored alone.
func (f *Fitter) remembered(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *memo, indexes []int) ([]int64, error) {
	var unknown []int
	for _, at := range indexes {
		if !m.entries[at].scored {
			unknown = append(unknown, at)
		}
	}
	if len(unknown) == 0 {
		unknown = indexes[:1] // PreScore decides which plugins skip this very pod
	}
	scores, err := f.score(ctx, state, pod, unknown)
	if err != nil {
		return nil, err
	}
	if !state.GetSkipScorePlugins().HasAll(f.memos.scores...) {
		return nil, nil
	}
	if !m.keep(scores) {
		m.varies = true

		return nil, nil
	}
	for i, at := range unknown {
		m.entries[at].scored, m.entries[at].score = true, scores[i].TotalScore
	}
	totals := make([]int64, len(indexes))
	for i, at := range indexes {
		totals[i] = m.entries[at].score
	}

	return totals, nil
}

// keep reports whether every plugin that normalizes gave all nodes the same score, now
// and before.
func (m *memo) keep(scores []fwk.NodePluginScores) bool {
	for _, node := range scores {
		for _, s := range node.Scores {
			if unnormalized.Has(s.Name) {
				continue
			}
			if was, ok := m.constant[s.Name]; ok && was != s.Score {
				return false
			}
			if m.constant == nil {
				m.constant = map[string]int64{}
			}
			m.constant[s.Name] = s.Score
		}
	}

	return true
}

// score runs the score plugins on nodes, which are named by their position.
func (f *Fitter) score(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, indexes []int) ([]fwk.NodePluginScores, error) {
	nodes := make([]fwk.NodeInfo, len(indexes))
	for i, at := range indexes {
		nodes[i] = f.nodes[at]
	}
	if status := f.fw.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores, status := f.fw.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}

	return scores, nil
}
