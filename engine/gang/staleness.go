package gang

import (
	"slices"

	"github.com/arbor-control/arbor/engine/podtree"
)

// A Memory is what [Observe] remembers of one node of the tree, to distinguish a node that lost
// pods from a node whose spec was edited.
type Memory struct {
	// Met reports that the node has met a minimum: the following two.
	Met bool
	// SatisfiedMin is the largest minimum of pods that the node has met.
	SatisfiedMin int
	// SatisfiedChildren is the largest number of required children that it has
	// met.
	SatisfiedChildren int
	// Since is when the node was first observed below these numbers; 0 if it is
	// not below them.
	Since int64
	// Bound is how many pods of a leaf were bound when it was last observed.
	Bound int
	// Expected reports that the node was given places and that none of its pods
	// has been bound yet; see [Expect].
	Expected bool
}

// An Observation is the state of a gang at one moment.
type Observation struct {
	// Memory is for the next observation, by the name of the node; "" is the
	// gang itself.
	Memory map[string]Memory
	// Record is the part of the memory that cannot be derived from the pods: the
	// nodes that do not meet their present minimum. Only this must be stored.
	Record map[string]Memory
	// Evict has the indexes of the placed members to evict.
	Evict []int
	// Wait is how long it takes until the next grace period ends, 0 if none is
	// running.
	Wait int64
}

// Observe compares a gang with its earlier state. A node is broken if it lost pods and does not
// have the smaller of the minimum that it has now and the minimum that it once met; the same
// applies to required children. So a larger minimum, or an additional required subgroup, breaks
// nothing, and a smaller one repairs. A node that never met its minimum is never broken.
//
// Each broken node has its own clock. The clock starts when the node is first observed broken and
// stops when it is satisfied again. If it has run for the grace period, all placed members below
// the node must be evicted. A negative grace period never ends. A node without any placed member is
// forgotten.
//
// Members must be [Placed] only if they are bound. The times are in one unit,
// such as nanoseconds since 1970.
func Observe(tree *podtree.Tree, members []Member, rules Rules, memory map[string]Memory, now, grace int64) Observation {
	o := observer{
		census: count(tree, members, rules), memory: memory, now: now,
		lost: make([]bool, tree.Len()), fine: make([]bool, tree.Len()), since: make([]int64, tree.Len()),
		result: Observation{Memory: map[string]Memory{}, Record: map[string]Memory{}},
	}
	for _, i := range slices.Backward(o.order) {
		o.node(i)
	}
	o.evict(members, grace)

	return o.result
}

// An observer walks the tree, children before parents.
type observer struct {
	*census

	memory map[string]Memory
	now    int64
	// lost reports that a leaf at or below a node has fewer bound pods than before.
	lost []bool
	// fine reports that a node counts as satisfied for its parent.
	fine []bool
	// since is when the clock of a node started.
	since  []int64
	result Observation
}

// node decides whether a node is broken. Its children have been decided.
func (o *observer) node(i int) {
	name, bound := o.tree.Node(i).Name, o.bound[i]
	m := o.memory[name]
	o.lost[i] = bound < m.Bound || m.Expected && bound > 0
	children := o.fineChildren(i)
	o.fine[i] = o.satisfied[i]
	switch {
	case bound == 0 && m.Expected:
		o.result.Memory[name] = m

		return
	case bound == 0:
		return
	case o.satisfied[i]:
		m.Met = true
		m.SatisfiedMin, m.SatisfiedChildren = max(m.SatisfiedMin, o.min[i]), max(m.SatisfiedChildren, o.required[i])
	case m.Met:
		o.short(i, &m, children)
	}
	o.clock(i, &m)
	m.Bound, m.Expected = 0, false
	if o.tree.Node(i).IsLeaf() {
		m.Bound = bound
	}
	o.result.Memory[name] = m
	if m.Met && !o.satisfied[i] {
		o.result.Record[name] = m
	}
}

// fineChildren returns how many children of a node count as satisfied. A node has
// lost what its children have.
func (o *observer) fineChildren(i int) int {
	fine := 0
	for _, child := range o.tree.Node(i).Children {
		o.lost[i] = o.lost[i] || o.lost[child]
		if o.fine[child] {
			fine++
		}
	}

	return fine
}

// short decides about a node that does not meet its present minimum.
func (o *observer) short(i int, m *Memory, children int) {
	o.fine[i] = o.bound[i] >= min(o.min[i], m.SatisfiedMin) && children >= min(o.required[i], m.SatisfiedChildren)
	if !o.fine[i] && m.Since == 0 && !o.lost[i] {
		// All pods are still there, so the spec has changed. From now on the node
		// can only lose what it has.
		m.SatisfiedMin, m.SatisfiedChildren = min(m.SatisfiedMin, o.bound[i]), min(m.SatisfiedChildren, children)
		o.fine[i] = true
	}
}

// clock starts or stops the clock of a node.
func (o *observer) clock(i int, m *Memory) {
	switch {
	case o.fine[i] || !m.Met:
		m.Since = 0
	case m.Since == 0:
		m.Since = o.now
	}
	o.since[i] = m.Since
}

// evict chooses the members below nodes whose clock has run for the grace period.
func (o *observer) evict(members []Member, grace int64) {
	if grace < 0 {
		return
	}
	over := o.overdue(grace)
	for at, m := range members {
		if m.State == Placed && over[m.Leaf] {
			o.result.Evict = append(o.result.Evict, at)
		}
	}
}

// overdue reports which nodes are at or below one whose clock has run for the grace
// period. It notes when the next clock will have.
func (o *observer) overdue(grace int64) []bool {
	over := make([]bool, o.tree.Len())
	for _, i := range o.order {
		up := o.tree.Node(i).Parent
		rest := grace - max(0, o.now-o.since[i])
		switch {
		case up >= 0 && over[up]:
			over[i] = true
		case o.since[i] == 0:
		case rest <= 0:
			over[i] = true
		case o.result.Wait == 0 || rest < o.result.Wait:
			o.result.Wait = rest
		}
	}

	return over
}

// Expect returns what to remember of a decision before its members are bound: if some of them
// cannot be bound, the rest has lost them. Nodes that had bound members before have their own
// memory, or never met their minimum. See [Remember].
func Expect(tree *podtree.Tree, d Decision) map[string]Memory {
	expected := map[string]Memory{}
	for i, r := range d.Nodes {
		if r.Satisfied && r.Bound == 0 && r.New > 0 {
			expected[tree.Node(i).Name] = Memory{Met: true, SatisfiedMin: r.Min, SatisfiedChildren: r.MinChildren, Expected: true}
		}
	}

	return expected
}

// Remember adds what is expected to a memory. What was observed counts first.
func Remember(memory, expected map[string]Memory) {
	for name, m := range expected {
		if had := memory[name]; !had.Met || had.Expected {
			memory[name] = m
		}
	}
}
