package synthesis

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
)

// Namespaces are tenants, and one tenant must not delay the rest. So free slots are assigned to the
// namespaces in turn, to those with the fewest syntheses in flight first, and some slots are only
// for namespaces that have none in flight. A tenant with programs that hang, or with thousands of
// compositions, then waits for itself.

const (
	// reserve is one slot in so many that only a namespace without synthesis in flight gets,
	// and at least one, unless there is only one.
	reserve = 5
	// maxTurns is how many namespaces are remembered.
	maxTurns = 10_000
)

// slots are the syntheses that may be in flight.
type slots struct {
	free, reserved int
	// denied is set once a synthesis waits because there is no slot for it.
	denied bool
}

// newSlots returns those that are left while syntheses are in flight, by namespace.
func newSlots(concurrency int, running map[string]int) *slots {
	s := &slots{free: concurrency}
	if concurrency > 1 {
		s.reserved = max(1, concurrency/reserve)
	}
	for _, n := range running {
		s.free -= n
	}

	return s
}

// has reports whether a namespace with some syntheses in flight gets another slot.
func (s *slots) has(running int) bool {
	return s.free > s.reserved || s.free > 0 && running == 0
}

// left is how many more syntheses could be begun.
func (s *slots) left() int {
	if s.denied {
		return 0
	}

	return max(s.free, 0)
}

// A line is the syntheses that one namespace waits for, the most urgent one first.
type line struct {
	waiting []*Start
	// running is how many it has in flight, and turn when it was served last.
	running int
	turn    uint64
}

// lines are those of all namespaces. As a heap, they are in the order in which they get
// slots.
type lines []*line

// newLines sorts the starts that need a slot by namespace, and keeps their order.
func newLines(all []Start, running map[string]int, turns turns) lines {
	var sorted lines
	found := map[string]*line{}
	for i := range all {
		if !all[i].needsSlot() {
			continue
		}
		namespace := all[i].Composition.Namespace
		l := found[namespace]
		if l == nil {
			l = &line{running: running[namespace], turn: turns.last[namespace]}
			found[namespace] = l
			sorted = append(sorted, l)
		}
		l.waiting = append(l.waiting, &all[i])
	}

	return sorted
}

func (l *lines) Len() int      { return len(*l) }
func (l *lines) Swap(i, j int) { (*l)[i], (*l)[j] = (*l)[j], (*l)[i] }

// Less orders by syntheses in flight, then by turn, then by urgency. No two are equal.
func (l *lines) Less(i, j int) bool {
	a, b := (*l)[i], (*l)[j]

	return cmp.Or(cmp.Compare(a.running, b.running), cmp.Compare(a.turn, b.turn), cmp.Compare(a.waiting[0].place, b.waiting[0].place)) < 0
}

// Push is not used: there is no line that comes later.
func (l *lines) Push(any) {}

// Pop removes the last line.
func (l *lines) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]

	return last
}

// serve has every start considered once, in the order in which namespaces get slots.
// consider gets a start and whether there is a slot for it, and reports whether it has
// begun.
func (l *lines) serve(s *slots, consider func(start *Start, slot bool) bool) {
	heap.Init(l)
	for l.Len() > 0 {
		first := (*l)[0]
		// No synthesis ends while slots are given, so a namespace that gets none now gets
		// none later.
		slot := s.has(first.running)
		for begun := false; len(first.waiting) > 0 && !begun; {
			if begun = consider(first.waiting[0], slot); begun {
				s.free--
				first.running++
			}
			first.waiting = first.waiting[1:]
		}
		if len(first.waiting) == 0 {
			heap.Pop(l)
		} else {
			heap.Fix(l, 0)
		}
	}
}

// turns are when namespaces were served last, in no unit of time. A namespace that was never
// served is first. It is remembered while it has no compositions, so that deleting and
// creating them again gains nothing.
type turns struct {
	last map[string]uint64
	next uint64
}

func (t *turns) served(namespace string) {
	if t.last == nil {
		t.last = map[string]uint64{}
	}
	t.next++
	t.last[namespace] = t.next
	if len(t.last) <= maxTurns {
		return
	}
	// Those that were served long ago are hardly behind those that never were.
	all := slices.Sorted(maps.Values(t.last))
	oldest := all[len(all)/2]
	maps.DeleteFunc(t.last, func(_ string, turn uint64) bool { return turn < oldest })
}
