package preemption

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Turns decides which gang may use the copy of the cluster next, to search or to verify a plan.
// There is one copy, so there is one turn at a time. The gang of the highest priority is first,
// and among gangs of one priority one whose turn is urgent. Among the rest, it is one of the
// namespace that has had the shortest turns since gangs began to wait: a namespace with many
// gangs whose searches are slow delays those of another one by one search, not by all of them.
// The zero value is ready to use.
//
// A gang that has to wait is called when it is its turn. It may have no use for its turn by
// then, so Done has to be called after every gang that was dealt with.
type Turns struct {
	waiting []turn
	// active is the turn that is under way, nil if there is none.
	active *turn
	// called is the gang that was asked to come back, nil if there is none.
	called *turn
	// used is how long the turns of a namespace have taken.
	used map[account]time.Duration
	// clock is what the namespace had used whose turn began last.
	clock map[class]time.Duration
}

// A turn is one gang that waits, or uses the copy.
type turn struct {
	class

	gang types.NamespacedName
}

// A class is a set of turns that namespaces share fairly.
type class struct {
	priority int32
	urgent   bool
}

// An account is the share of a namespace.
type account struct {
	class

	namespace string
}

func (t turn) account() account { return account{t.class, t.gang.Namespace} }

// Begin reports whether it is the turn of a gang now. If it is not, the gang is called later.
// A turn is urgent if pods are terminating already to make room for the gang.
func (t *Turns) Begin(gang types.NamespacedName, priority int32, urgent bool) bool {
	is := turn{class{priority, urgent}, gang}
	t.join(is)
	at := slices.IndexFunc(t.waiting, func(was turn) bool { return was.gang == gang })
	first := t.called == nil || t.called.gang == gang || is.compare(t.called.class) < 0
	if t.active == nil && first {
		t.active = &is
		t.clock[is.class] = max(t.clock[is.class], t.used[is.account()])
		if at >= 0 {
			t.waiting = slices.Delete(t.waiting, at, at+1)
		}

		return true
	}
	if at >= 0 {
		t.waiting[at] = is
	} else {
		t.waiting = append(t.waiting, is)
	}

	return false
}

// End reports that the turn of a gang is over, and how long it took. It returns the gang that
// is called next, and false if there is none: until another gang is called, any gang could
// begin, whatever its priority.
func (t *Turns) End(gang types.NamespacedName, took time.Duration) (next types.NamespacedName, ok bool) {
	if t.active != nil && t.active.gang == gang {
		t.used[t.active.account()] += took
		t.active = nil
	}

	return t.Done(gang)
}

// Done reports that a gang was dealt with, whether or not it had its turn. It returns the
// gang that is called next, and false if there is none. It may be called more than once.
func (t *Turns) Done(gang types.NamespacedName) (next types.NamespacedName, ok bool) {
	if t.called != nil && t.called.gang == gang {
		t.called = nil
	}
	if t.active != nil || t.called != nil {
		return types.NamespacedName{}, false
	}
	if len(t.waiting) == 0 {
		t.used, t.clock = nil, nil // no gang waits, so no namespace has had more than its share

		return types.NamespacedName{}, false
	}
	at := 0
	for i := range t.waiting {
		if t.before(t.waiting[i], t.waiting[at]) {
			at = i
		}
	}
	is := t.waiting[at]
	t.waiting, t.called = slices.Delete(t.waiting, at, at+1), &is

	return is.gang, true
}

// before reports whether a gang is called before another one that waits longer.
func (t *Turns) before(a, b turn) bool {
	return cmp.Or(a.compare(b.class), cmp.Compare(t.used[a.account()], t.used[b.account()])) < 0
}

// compare is negative if turns of a class are before those of another one.
func (c class) compare(other class) int {
	switch order := cmp.Compare(other.priority, c.priority); {
	case order != 0 || c.urgent == other.urgent:
		return order
	case c.urgent:
		return -1
	default:
		return 1
	}
}

// join makes the namespace of a gang that does not wait yet start with what the one has used whose
// turn began last: time without a turn is not a credit. This is start-time fair queueing, with one
// queue per class.
func (t *Turns) join(is turn) {
	if t.used == nil {
		t.used, t.clock = map[account]time.Duration{}, map[class]time.Duration{}
	}
	if slices.Contains(t.waiting, is) || t.called != nil && *t.called == is {
		return
	}
	t.used[is.account()] = max(t.used[is.account()], t.clock[is.class])
}
