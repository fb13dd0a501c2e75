package delivery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// A Schedule decides which resources may be worked on. Groups open one after the other, as soon as
// all of the one before are done: ready, or gone when the composition is being deleted. Objects
// also wait for the CRD of their kind. It costs the same for each resource, however many there are.
type Schedule struct {
	// groups are in their order, each with how many are not done.
	groups  [][]int
	pending []int
	at      int

	// group of each resource, unordered if it waits for none.
	group []int
	// crd is the CRD that a resource waits for, or unordered.
	crd []int
	// previous is the one before in the chain of resources about one object, or
	// unordered. See Chains.
	previous   []int
	dependents map[int][]int
	done       []bool

	// applied are the manifests that the cluster agrees with, unapplied counts the rest, and last
	// are the tombstones that wait for them.
	applied   []bool
	unapplied int
	last      []int
	isLast    []bool
	tombstone []bool
}

const unordered = -1

// NewSchedule orders resources, which are known by their places in the list. If the composition is
// being deleted, it is the order in which they are deleted. Tombstones of a synthesis wait until
// every manifest is applied, unless their setting differs. Nothing waits for them, and places that
// hold nothing wait for nothing.
func NewSchedule(resources []*Resource, deleting bool) *Schedule {
	s := &Schedule{
		group: make([]int, len(resources)), crd: make([]int, len(resources)), previous: make([]int, len(resources)),
		dependents: map[int][]int{}, done: make([]bool, len(resources)),
		applied: make([]bool, len(resources)), tombstone: make([]bool, len(resources)), isLast: make([]bool, len(resources)),
	}
	numbers := map[int]int{}
	for i, r := range resources {
		s.group[i], s.crd[i], s.previous[i] = unordered, unordered, unordered
		if n, ok := groupOf(r, deleting); ok {
			numbers[i] = n
		}
		if r == nil {
			s.applied[i] = true // nothing waits for it
		} else if !deleting {
			s.addPruning(i, r)
		}
	}
	if !deleting {
		s.addCRDs(resources, numbers)
		s.addChains(resources, numbers)
	}
	order := make([]int, 0, len(numbers))
	for i := range resources {
		if _, ok := numbers[i]; ok {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return numbers[a] - numbers[b] })
	s.addGroups(order, numbers)
	s.advance()

	return s
}

// addGroups cuts an order into groups.
func (s *Schedule) addGroups(order []int, numbers map[int]int) {
	for at, i := range order {
		if at == 0 || numbers[order[at-1]] != numbers[i] {
			s.groups, s.pending = append(s.groups, nil), append(s.pending, 0)
		}
		last := len(s.groups) - 1
		s.groups[last], s.group[i] = append(s.groups[last], i), last
		if !s.tombstone[i] {
			s.pending[last]++
		}
	}
}

// addPruning has a tombstone wait for manifests to be applied, if it does.
func (s *Schedule) addPruning(i int, r *Resource) {
	switch {
	case !r.Tombstone:
		s.unapplied++
	case r.Prune == enov1.PruneLast:
		s.last = append(s.last, i)
		s.tombstone[i], s.isLast[i] = true, true
	default:
		s.tombstone[i] = true
	}
}

func groupOf(r *Resource, deleting bool) (int, bool) {
	switch {
	case r == nil:
		return 0, false
	case deleting && r.DeletionGroup != nil:
		return *r.DeletionGroup, true
	case deleting || r.Tombstone && r.Prune != enov1.PruneWithGroup:
		return 0, false
	}

	return r.ReadinessGroup, true
}

// addCRDs has objects wait for the CRD of their kind. A CRD in a later group than its objects would
// never be applied, so it comes with the first of them.
func (s *Schedule) addCRDs(resources []*Resource, numbers map[int]int) {
	of := map[schema.GroupKind]int{}
	for i, r := range resources {
		if r != nil && !r.Tombstone && r.Defines.Kind != "" {
			of[r.Defines] = i
		}
	}
	for i, r := range resources {
		if r == nil || r.Tombstone || r.IsPatch() {
			continue
		}
		if d, ok := of[r.GVK.GroupKind()]; ok {
			s.crd[i] = d
			s.dependents[d] = append(s.dependents[d], i)
			numbers[d] = min(numbers[d], numbers[i])
		}
	}
}

// addChains has resources about one object run one after the other. Nothing waits for a later
// group: a CRD may have moved to an earlier one.
func (s *Schedule) addChains(resources []*Resource, numbers map[int]int) {
	for _, chain := range Chains(resources) {
		for at := len(chain) - 1; at > 0; at-- {
			before, i := chain[at-1], chain[at]
			s.previous[i] = before
			s.dependents[before] = append(s.dependents[before], i)
			numbers[before] = min(numbers[before], numbers[i])
		}
	}
}

// Open reports whether a resource may be worked on.
func (s *Schedule) Open(i int) bool {
	after := func(j int) bool { return j == unordered || s.done[j] }

	return (!s.isLast[i] || s.unapplied == 0) && s.group[i] <= s.at && after(s.crd[i]) && after(s.previous[i])
}

// Done records that a resource is ready, or gone, and returns those that may be worked on because
// of it. What is done stays so.
func (s *Schedule) Done(i int) []int {
	if s.done[i] {
		return nil
	}
	s.done[i] = true
	var opened []int
	for _, d := range s.dependents[i] {
		if s.Open(d) {
			opened = append(opened, d)
		}
	}
	if s.group[i] == unordered || s.tombstone[i] {
		return opened
	}
	s.pending[s.group[i]]--

	return append(opened, s.advance()...)
}

// advance opens groups until one has something to wait for.
func (s *Schedule) advance() []int {
	var opened []int
	for s.at < len(s.groups) && s.pending[s.at] == 0 {
		s.at++
		if s.at == len(s.groups) {
			break
		}
		for _, d := range s.groups[s.at] {
			if s.Open(d) {
				opened = append(opened, d)
			}
		}
	}

	return opened
}

// Applied records that the cluster agrees with a manifest, and returns the tombstones that may be
// worked on because of it. What was applied once counts as applied.
func (s *Schedule) Applied(i int) []int {
	if s.applied[i] || s.tombstone[i] {
		return nil
	}
	s.applied[i] = true
	if s.unapplied--; s.unapplied != 0 {
		return nil
	}

	return s.last
}

// Unusable records that there are further manifests, which cannot be applied.
func (s *Schedule) Unusable(n int) { s.unapplied += n }
