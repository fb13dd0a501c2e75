package preemption

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Turns decides which gang may search next. Searches work on one copy of the cluster, so
// there is one at a time. The gang of the highest priority is first. Among gangs of one
// priority, it is one of the namespace that has searched for the shortest time since gangs
// began to wait: a namespace with many gangs whose searches are slow delays those of another
// one by one search, not by all of them. The zero value is ready to use.
//
// A gang that has to wait is called when it is its turn. It may have no use for its turn by
// then, so Done has to be called after every gang that was dealt with.
type Turns struct {
	waiting []turn
	// busy reports that a search is under way.
	busy bool
	// called is the gang that was asked to come back, nil if there is none.
	called *turn
	// used is how long the gangs of a namespace have searched.
	used map[string]time.Duration
}

// A turn is one gang that waits.
type turn struct {
	gang     types.NamespacedName
	priority int32
}

// Begin reports whether a gang may search now. If it may not, it is called later.
func (t *Turns) Begin(gang types.NamespacedName, priority int32) bool {
	first := t.called == nil || t.called.gang == gang || priority > t.called.priority
	if !t.busy && first {
		t.busy = true
		t.waiting = slices.DeleteFunc(t.waiting, func(is turn) bool { return is.gang == gang })

		return true
	}
	if at := slices.IndexFunc(t.waiting, func(is turn) bool { return is.gang == gang }); at >= 0 {
		t.waiting[at].priority = priority

		return false
	}
	t.join(gang.Namespace)
	t.waiting = append(t.waiting, turn{gang: gang, priority: priority})

	return false
}

// End reports that the search of a gang is over, and how long it took.
func (t *Turns) End(gang types.NamespacedName, took time.Duration) {
	t.busy = false
	if t.used == nil {
		t.used = map[string]time.Duration{}
	}
	t.used[gang.Namespace] += took
}

// Done reports that a gang was dealt with, whether or not it has searched. It returns the
// gang that is called next, and false if there is none.
func (t *Turns) Done(gang types.NamespacedName) (next types.NamespacedName, ok bool) {
	if t.called != nil && t.called.gang == gang {
		t.called = nil
	}
	if t.busy || t.called != nil {
		return types.NamespacedName{}, false
	}
	if len(t.waiting) == 0 {
		t.used = nil // no gang waits, so no namespace has had more than its share

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
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(t.used[a.gang.Namespace], t.used[b.gang.Namespace])) < 0
}

// join has a namespace of which no gang waits begin with what the others have used: the
// time in which it did not search is no credit.
func (t *Turns) join(namespace string) {
	if len(t.waiting) == 0 || slices.ContainsFunc(t.waiting, func(is turn) bool { return is.gang.Namespace == namespace }) {
		return
	}
	least := t.used[t.waiting[0].gang.Namespace]
	for _, is := range t.waiting {
		least = min(least, t.used[is.gang.Namespace])
	}
	if least > t.used[namespace] {
		t.used[namespace] = least
	}
}
