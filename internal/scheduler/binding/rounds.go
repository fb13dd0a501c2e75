package binding

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/scheduling"
	"github.com/arbor-control/arbor/internal/scheduler/backoff"
)

// errDeleted is why a member that was deleted during its round is canceled.
var errDeleted = errors.New("the pod was deleted")

// errChanged is why the members of a PodGroup that was changed are canceled.
var errChanged = errors.New("the PodGroup was changed")

// Rounds knows the rounds that are under way, by gang.
type Rounds struct {
	wake func(types.NamespacedName)

	mu  sync.Mutex
	all map[types.NamespacedName][]*binding
	// late has gangs with pods that came while the gang was being bound. They
	// are tried when that is over.
	late map[types.NamespacedName]bool
}

// NewRounds returns an empty list of rounds. wake wakes the pods that waited for the end of one.
func NewRounds(wake func(types.NamespacedName)) *Rounds {
	return &Rounds{wake: wake, all: map[types.NamespacedName][]*binding{}, late: map[types.NamespacedName]bool{}}
}

func (r *Rounds) add(key types.NamespacedName, b *binding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[key] = append(r.all[key], b)
}

func (r *Rounds) remove(key types.NamespacedName, b *binding) {
	r.mu.Lock()
	r.all[key] = slices.DeleteFunc(r.all[key], func(other *binding) bool { return other == b })
	if len(r.all[key]) == 0 {
		delete(r.all, key)
	}
	r.mu.Unlock()
	r.settled(key)
}

// settled wakes the pods that waited for the end of a round.
func (r *Rounds) settled(key types.NamespacedName) {
	r.mu.Lock()
	woken := r.late[key] && !r.bindingLocked(key)
	if woken {
		delete(r.late, key)
	}
	r.mu.Unlock()
	if woken {
		r.wake(key)
	}
}

// Binding reports whether a gang's minimum is being bound. Until that is over,
// it is not known whether the gang has its minimum, and no other member is tried.
func (r *Rounds) Binding(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.bindingLocked(key)
}

func (r *Rounds) bindingLocked(key types.NamespacedName) bool {
	return slices.ContainsFunc(r.all[key], func(b *binding) bool { return b.round.binding() })
}

// WakeAfter wakes the gang when its minimum has been dealt with. Call it after
// the pods are back in the queue.
func (r *Rounds) WakeAfter(key types.NamespacedName) {
	r.mu.Lock()
	r.late[key] = true
	r.mu.Unlock()
	r.settled(key)
}

// Deleted cancels the binding of a pod that was deleted, so that its gang does
// not hold room for a minimum that it cannot have.
func (r *Rounds) Deleted(key types.NamespacedName, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.all[key] {
		for m, h := range b.held {
			if h.Pod.UID == uid {
				b.round.members[m].cancel(errDeleted)
			}
		}
	}
}

// Changed cancels the rounds of a PodGroup that was edited or deleted, unless pods are
// being bound already: they were planned for another spec.
func (r *Rounds) Changed(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.all[key] {
		for m := range b.round.members[:b.round.required] {
			b.round.members[m].cancel(errChanged)
		}
	}
}

// Status returns the condition Scheduled=False of a gang whose minimum takes
// long to be bound. It changes when the reporter is touched.
func (r *Rounds) Status(key types.NamespacedName) (*decide.Refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.all[key] {
		if m, stage, since, ok := b.round.slowest(); ok {
			h := b.held[m]

			return &decide.Refusal{
				Reason: v2alpha2.ReasonBinding,
				Message: fmt.Sprintf("pod %q waits for %s on node %q since %s%s; no pod of the minimum is bound before all of them are ready",
					h.Pod.Name, stage, h.Node, since.UTC().Format(time.RFC3339), backoff.VolumesOf(h.Pod)),
			}, true
		}
	}

	return nil, false
}
