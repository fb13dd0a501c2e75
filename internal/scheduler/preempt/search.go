package preempt

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/victims"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
)

// A problem is a search while it is put together.
type problem struct {
	victims.Problem

	p      *Preemptor
	key    types.NamespacedName
	now    time.Time
	dry    *dryRun
	pdbs   []*policyv1.PodDisruptionBudget
	under  []labels.Selector // by pdb
	number map[types.NamespacedName]*lossyGang
	pods   []*corev1.Pod // by candidate
}

// A lossyGang is a gang that may lose pods; members has them by UID.
type lossyGang struct {
	index    int
	priority int32
	eligible bool
	members  map[types.UID]int
}

// search looks for pods to evict so that a gang fits. It decides on a private copy
// of the cluster, outside the scheduling goroutine. The budget does not include the time
// that it waits for other searches.
func (p *Preemptor) search(ctx context.Context, key types.NamespacedName, g *decide.Gang, budget time.Duration) searched {
	done, err := p.Trial.Open(ctx, p.Groups.Placed)
	if err != nil {
		return searched{err: err}
	}
	defer done()
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var s searched
	s.err = p.searchIn(ctx, key, g, p.Groups.Priority(g.Group, g.Pods), &s)
	s.took, s.exceeded = time.Since(began), Exceeded(ctx, s.err)

	return s
}

// Exceeded reports whether something failed because its own time was over. A request of an
// extender that timed out is another error, although it says context.DeadlineExceeded too.
func Exceeded(ctx context.Context, err error) bool {
	var request *url.Error

	return err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.As(err, &request)
}

// searchIn searches on the copy of the cluster, which is open.
func (p *Preemptor) searchIn(ctx context.Context, key types.NamespacedName, g *decide.Gang, priority int32, s *searched) error {
	dry, err := trialDryRun(ctx, p.Trial, key, g, priority)
	if err != nil {
		return err
	}
	if err := dry.askExtenders(ctx, p.Kube.Extenders); err != nil {
		return err
	}
	q, err := p.newProblem(key, g, dry, priority)
	if err != nil {
		return err
	}
	s.candidates = len(q.Pods)
	if s.result, err = victims.Search(ctx, &q.Problem, dry); err != nil {
		return err
	}
	switch s.result.Outcome {
	case victims.Found, victims.Fits:
		return p.found(ctx, g, q, s, priority)
	case victims.Impossible, victims.Insufficient:
		// The names are for a message: without them the answer holds all the same.
		if blockers, err := q.blockers(ctx); err == nil {
			s.blockers = blockers
		}
	case victims.Unproven:
	}

	return nil
}

// found makes a plan of the places and victims of a search.
func (p *Preemptor) found(ctx context.Context, g *decide.Gang, q *problem, s *searched, priority int32) error {
	found := &plan{group: g.Group.UID, generation: g.Group.Generation, priority: priority, violations: s.result.Violations}
	for _, place := range s.result.Places {
		found.pods = append(found.pods, g.Pods[place.Member])
	}
	found.nodes = q.dry.names(s.result.Places)
	for _, i := range s.result.Victims {
		found.victims = append(found.victims, q.pods[i])
	}
	found.victims = append(found.victims, q.dry.terminatingOn(found.nodes, q.now)...)
	if len(found.victims) == 0 {
		return nil // it fits as it is
	}
	if err := q.dry.processPreemption(ctx, p.Kube.Extenders, found); err != nil {
		return err
	}
	s.found = found

	return nil
}

// blockers returns the pods that do not terminate and without which there would be a plan:
// those on its nodes. It is asked after a search that found none.
func (q *problem) blockers(ctx context.Context) ([]string, error) {
	overdue := q.dry.removeOverdue(q.now)
	if len(overdue) == 0 {
		return nil, nil
	}
	q.Amounts = q.dry.amounts(q.p.Trial.FitArgs[q.dry.fw.ProfileName()])
	result, err := victims.Search(ctx, &q.Problem, q.dry)
	if err != nil {
		return nil, err
	}
	nodes := sets.New(q.dry.names(result.Places)...)
	var names []string
	for _, pod := range overdue {
		if nodes.Has(pod.Spec.NodeName) {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}

	return names, nil
}

// newProblem has all candidates for a priority.
func (p *Preemptor) newProblem(key types.NamespacedName, g *decide.Gang, dry *dryRun, priority int32) (*problem, error) {
	q, err := p.emptyProblem(key, g, dry)
	if err != nil {
		return nil, err
	}
	dry.removeTerminating(q.now)
	for i := range dry.nodes {
		for _, info := range dry.nodes[i].GetPods() {
			q.consider(info, i, priority)
		}
	}
	q.Amounts = dry.amounts(p.Trial.FitArgs[dry.fw.ProfileName()])

	return q, nil
}

// emptyProblem has no candidates yet.
func (p *Preemptor) emptyProblem(key types.NamespacedName, g *decide.Gang, dry *dryRun) (*problem, error) {
	q := &problem{
		Problem: victims.Problem{Tree: g.Tree, Members: memoizable(g), Rules: g.Rules, Nodes: len(dry.nodes), HardBudgets: p.Options.RespectPDB},
		p:       p, key: key, now: time.Now(), dry: dry, number: map[types.NamespacedName]*lossyGang{},
	}
	pdbs, err := p.Budgets.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, pdb := range pdbs {
		if selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector); err == nil {
			q.pdbs, q.under = append(q.pdbs, pdb), append(q.under, selector)
			q.Budgets = append(q.Budgets, pdb.Status.DisruptionsAllowed)
		}
	}

	return q, nil
}

// memoizable returns the members without the shape of those for which placing one
// pod changes other nodes too.
func memoizable(g *decide.Gang) []gang.Member {
	members := append([]gang.Member(nil), g.Members...)
	for i := range members {
		spec := &g.Pods[i].Spec
		if len(spec.TopologySpreadConstraints) > 0 || spec.Affinity != nil && (spec.Affinity.PodAffinity != nil || spec.Affinity.PodAntiAffinity != nil) {
			members[i].Shape = ""
		}
	}

	return members
}

// consider makes a running pod a candidate if it may be evicted for a priority.
func (q *problem) consider(info fwk.PodInfo, node int, below int32) {
	pod := info.GetPod()
	if pod.DeletionTimestamp != nil || q.p.Groups.IsLeaving(pod.UID) {
		return
	}
	c := victims.Pod{Name: pod.Namespace + "/" + pod.Name, Node: node, Gang: -1, Priority: corev1helpers.PodPriority(pod)}
	if of, ok := decide.GroupOf(pod); ok {
		if of == q.key {
			return
		}
		g := q.gangOf(of, below)
		if g != nil {
			member, known := g.members[pod.UID]
			if !g.eligible || !known {
				return
			}
			c.Gang, c.Member, c.Priority = g.index, member, g.priority
		}
	}
	if c.Priority < below {
		q.add(c, info)
	}
}

// add makes a running pod a candidate.
func (q *problem) add(c victims.Pod, info fwk.PodInfo) {
	pod := info.GetPod()
	c.Damage, c.Budgets = damage(pod), q.budgetsOf(pod)
	if pod.Status.StartTime != nil {
		c.Started = pod.Status.StartTime.UnixNano()
	} else {
		c.Started = pod.CreationTimestamp.UnixNano()
	}
	q.Pods = append(q.Pods, c)
	q.pods = append(q.pods, pod)
	q.dry.candidate(info, c.Node)
}

// gangOf reads a running gang once. It is nil if there is no such PodGroup: its pods
// are plain ones then.
func (q *problem) gangOf(key types.NamespacedName, below int32) *lossyGang {
	if g, ok := q.number[key]; ok {
		return g
	}
	q.number[key] = nil
	g := q.p.Groups.Running(key)
	if g == nil {
		return nil
	}
	l := &lossyGang{members: map[types.UID]int{}, priority: q.p.Groups.Priority(g.Group, g.Pods), index: len(q.Gangs)}
	q.number[key] = l
	l.eligible = l.priority < below && decide.Preemptible(g.Group, l.priority)
	q.Gangs = append(q.Gangs, victims.Gang{Tree: g.Tree, Members: g.Members, Rules: g.Rules})
	for i, pod := range g.Pods {
		l.members[pod.UID] = i
	}

	return l
}

func (q *problem) budgetsOf(pod *corev1.Pod) []int {
	var under []int
	for i, pdb := range q.pdbs {
		if pdb.Namespace != pod.Namespace || !q.under[i].Matches(labels.Set(pod.Labels)) {
			continue
		}
		if _, counted := pdb.Status.DisruptedPods[pod.Name]; !counted {
			under = append(under, i)
		}
	}

	return under
}

// damage compares what is lost with a pod: its GPUs, and among pods without any
// difference in these, its CPU.
func damage(pod *corev1.Pod) int64 {
	const perGPU = 1_000_000 // milli-CPUs, more than a node has
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	total := requests.Cpu().MilliValue()
	for name, quantity := range requests {
		if strings.HasSuffix(string(name), "/gpu") {
			total += quantity.Value() * perGPU
		}
	}

	return total
}
