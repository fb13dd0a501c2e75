package delivery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Schedule says which resources may be worked on. Groups open one after the
// other, as soon as all of the one before are done: ready, or gone when the
// composition is being deleted. Objects also wait for the definition of their
// kind. It costs the same for each resource, however many there are.
type Schedule struct {
	// groups are in their order, each with how many are not done.
	groups  [][]int
	pending []int
	at      int

	// group of each resource, unordered if it waits for none.
	group []int
	// definition that a resource waits for, or unordered, and who waits for it.
	definition []int
	dependents map[int][]int
	done       []bool
}

const unordered = -1

// NewSchedule orders resources, which are known by their places in the list. If
// the composition is being deleted, it is the order in which they are deleted.
// Tombstones of a synthesis wait for nobody, and nobody waits for them, as are
// places that hold nothing.
func NewSchedule(resources []*Resource, deleting bool) *Schedule {
	s := &Schedule{
		group: make([]int, len(resources)), definition: make([]int, len(resources)),
		dependents: map[int][]int{}, done: make([]bool, len(resources)),
	}
	numbers := map[int]int{}
	for i, r := range resources {
		s.group[i], s.definition[i] = unordered, unordered
		if n, ok := groupOf(r, deleting); ok {
			numbers[i] = n
		}
	}
	if !deleting {
		s.addDefinitions(resources, numbers)
	}
	order := make([]int, 0, len(numbers))
	for i := range resources {
		if _, ok := numbers[i]; ok {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return numbers[a] - numbers[b] })
	for at, i := range order {
		if at == 0 || numbers[order[at-1]] != numbers[i] {
			s.groups, s.pending = append(s.groups, nil), append(s.pending, 0)
		}
		last := len(s.groups) - 1
		s.groups[last], s.group[i] = append(s.groups[last], i), last
		s.pending[last]++
	}

	return s
}

func groupOf(r *Resource, deleting bool) (int, bool) {
	switch {
	case r == nil:
		return 0, false
	case deleting && r.DeletionGroup != nil:
		return *r.DeletionGroup, true
	case deleting || r.Tombstone:
		return 0, false
	}

	return r.ReadinessGroup, true
}

// addDefinitions has objects wait for the definition of their kind. One that
// stands in a later group than its objects would never get its turn, so it comes
// with the first of them.
func (s *Schedule) addDefinitions(resources []*Resource, numbers map[int]int) {
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
			s.definition[i] = d
			s.dependents[d] = append(s.dependents[d], i)
			numbers[d] = min(numbers[d], numbers[i])
		}
	}
}

// Open says whether a resource may be worked on.
func (s *Schedule) Open(i int) bool {
	return s.group[i] <= s.at && (s.definition[i] == unordered || s.done[s.definition[i]])
}

// Done says that a resource is ready, or gone, and returns those that may be
// worked on because of it. What is done stays so.
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
	if s.group[i] == unordered {
		return opened
	}
	s.pending[s.group[i]]--
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
