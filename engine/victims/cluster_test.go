package victims_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/arbor-control/arbor/engine/gang"
	"github.com/arbor-control/arbor/engine/podtree"
	"github.com/arbor-control/arbor/engine/victims"
)

var errCluster = errors.New("the cluster cannot be read")

// A thing is what the cluster knows of a pod.
type thing struct {
	gpu, cpu int
	// alone keeps it out of clusters that run pods of that app, wherever.
	app, alone string
}

// A cluster is nodes with GPUs and CPUs in memory. It panics if it is asked to
// do something twice.
type cluster struct {
	free          []thing
	members, pods []thing
	on            []int // node of each pod
	placed        map[int]int
	evicted       map[int]bool
	apps, alone   map[string]int

	asked int
	// failAt makes that question an error, cancelAt cancels the context.
	failAt, cancelAt int
	cancel           func()
}

func (c *cluster) Fits(ctx context.Context, member, node int) (bool, error) {
	c.asked++
	if c.asked == c.failAt {
		return false, errCluster
	}
	if c.asked == c.cancelAt {
		c.cancel()
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}

	return c.fits(member, node), nil
}

func (c *cluster) fits(member, node int) bool {
	m := c.members[member]

	return c.free[node].gpu >= m.gpu && c.free[node].cpu >= m.cpu &&
		(m.alone == "" || c.apps[m.alone] == 0) && (m.app == "" || c.alone[m.app] == 0)
}

func (c *cluster) FitsAny(ctx context.Context, member int, nodes []int) ([]bool, error) {
	all := make([]bool, len(nodes))
	for i, node := range nodes {
		var err error
		if all[i], err = c.Fits(ctx, member, node); err != nil {
			return nil, err
		}
	}

	return all, nil
}

func (c *cluster) Place(member, node int) {
	if _, twice := c.placed[member]; twice {
		panic(fmt.Sprintf("member %d is placed twice", member))
	}
	c.placed[member] = node
	c.add(node, c.members[member], 1)
}

func (c *cluster) Unplace(member, node int) {
	if at, ok := c.placed[member]; !ok || at != node {
		panic(fmt.Sprintf("member %d is not on node %d", member, node))
	}
	delete(c.placed, member)
	c.add(node, c.members[member], -1)
}

func (c *cluster) Evict(pod int) {
	if c.evicted[pod] {
		panic(fmt.Sprintf("pod %d is evicted twice", pod))
	}
	c.evicted[pod] = true
	c.add(c.on[pod], c.pods[pod], -1)
}

func (c *cluster) Restore(pod int) {
	if !c.evicted[pod] {
		panic(fmt.Sprintf("pod %d is not evicted", pod))
	}
	delete(c.evicted, pod)
	c.add(c.on[pod], c.pods[pod], 1)
}

func (c *cluster) add(node int, t thing, n int) {
	c.free[node].gpu -= n * t.gpu
	c.free[node].cpu -= n * t.cpu
	count(c.apps, t.app, n)
	count(c.alone, t.alone, n)
}

// count leaves no zeros behind.
func count(all map[string]int, name string, n int) {
	if name == "" {
		return
	}
	if all[name] += n; all[name] == 0 {
		delete(all, name)
	}
}

// state is what must be the same before and after.
func (c *cluster) state() string {
	return fmt.Sprint(c.free, c.placed, c.evicted, c.apps, c.alone)
}

// A story is a problem with its cluster.
type story struct {
	victims.Problem

	cluster *cluster
}

func newStory(nodes, gpus int) *story {
	s := &story{cluster: &cluster{placed: map[int]int{}, evicted: map[int]bool{}, apps: map[string]int{}, alone: map[string]int{}}}
	s.Nodes = nodes
	for range nodes {
		s.cluster.free = append(s.cluster.free, thing{gpu: gpus, cpu: 100})
	}

	return s
}

func num(n int32) *int32 { return &n }

func newTree(spec podtree.Spec) *podtree.Tree {
	t, err := podtree.New(spec)
	if err != nil {
		panic(err)
	}

	return t
}

// flat is a gang without subgroups.
func flat(minimum int32) podtree.Spec { return podtree.Spec{MinMember: num(minimum)} }

func leaf(parent, name string, minimum int32) podtree.SubGroup {
	return podtree.SubGroup{Name: name, Parent: &parent, MinMember: num(minimum)}
}

func set(parent, name string, minimum int32) podtree.SubGroup {
	return podtree.SubGroup{Name: name, Parent: &parent, MinSubGroup: num(minimum)}
}

func members(tree *podtree.Tree, name string, n int, state gang.State, shape string) []gang.Member {
	at, ok := tree.Leaf(name)
	if !ok {
		panic("no leaf " + name)
	}
	var all []gang.Member
	for i := range n {
		all = append(all, gang.Member{Name: name + "-" + strconv.Itoa(i), Leaf: at, State: state, Shape: shape})
	}

	return all
}

// preemptor sets the gang that needs room.
func (s *story) preemptor(spec podtree.Spec) *story {
	s.Tree = newTree(spec)

	return s
}

// want adds members to it. Those that look at other nodes have no shape.
func (s *story) want(n int, leaf string, t thing) *story {
	shape := fmt.Sprint(t)
	if t.alone != "" {
		shape = ""
	}
	s.Members = append(s.Members, members(s.Tree, leaf, n, gang.Waiting, shape)...)
	for range n {
		s.cluster.members = append(s.cluster.members, t)
	}

	return s
}

// run adds a pod without a gang to a node.
func (s *story) run(name string, node int, t thing, with ...func(*victims.Pod)) *story {
	p := victims.Pod{Name: name, Node: node, Gang: -1, Damage: int64(t.gpu)}
	for _, change := range with {
		change(&p)
	}
	s.Pods = append(s.Pods, p)
	s.cluster.pods = append(s.cluster.pods, t)
	s.cluster.on = append(s.cluster.on, node)
	s.cluster.add(node, t, 1)

	return s
}

// gang adds a gang that is running; its pods follow with run and of.
func (s *story) gang(spec podtree.Spec) *story {
	s.Gangs = append(s.Gangs, victims.Gang{Tree: newTree(spec)})

	return s
}

// of makes a pod a member of the last gang.
func (s *story) of(leaf string) func(*victims.Pod) {
	return func(p *victims.Pod) {
		g := &s.Gangs[len(s.Gangs)-1]
		p.Gang, p.Member = len(s.Gangs)-1, len(g.Members)
		g.Members = append(g.Members, members(g.Tree, leaf, 1, gang.Placed, "")...)
	}
}

// succeeded adds members to the last gang that have no pods any more.
func (s *story) succeeded(n int, leaf string) *story {
	g := &s.Gangs[len(s.Gangs)-1]
	g.Members = append(g.Members, members(g.Tree, leaf, n, gang.Placed, "")...)

	return s
}

func priority(n int32) func(*victims.Pod) { return func(p *victims.Pod) { p.Priority = n } }

func started(n int64) func(*victims.Pod) { return func(p *victims.Pod) { p.Started = n } }

func under(budgets ...int) func(*victims.Pod) { return func(p *victims.Pod) { p.Budgets = budgets } }

func (s *story) names(pods []int) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, s.Pods[pod].Name)
	}
	slices.Sort(all)

	return all
}
