package delivery

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/krm"
)

// maxErrors is how many bytes of errors the status of a slice has, so that it can
// always be stored.
const maxErrors = 256 << 10

// A slice is where states are written.
type slice struct {
	types.NamespacedName

	// mu is held while the slice is written.
	mu    sync.Mutex
	count int
	// initialized : its status has a place for each resource. version is that of the
	// slice while it has not.
	initialized bool
	version     string

	// restUntil is when it may be written again, zero if it has no state to be written yet.
	// It is guarded by the statusWriter.
	restUntil time.Time

	// uuid is spec.synthesisUUID.
	uuid string
	// events tells changes of other clients from those of this process. Successive views share it.
	events *sliceEvents
	// rejected is why the slice of this name does not belong to the composition, "" if it does.
	rejected string
}

func newSlice(s *enov1.ResourceSlice) *slice {
	return &slice{
		NamespacedName: client.ObjectKeyFromObject(s), count: len(s.Spec.Resources), version: s.ResourceVersion,
		initialized: len(s.Status.Resources) == len(s.Spec.Resources), uuid: s.Spec.SynthesisUUID,
		events: &sliceEvents{},
	}
}

// Lock is held while the slice is written.
func (s *slice) Lock() { s.mu.Lock() }

// Unlock ends Lock.
func (s *slice) Unlock() { s.mu.Unlock() }

// reject records why the slice does not belong to its composition, "" if it does, and returns what was
// recorded before.
func (s *slice) reject(problem string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.rejected
	s.rejected = problem

	return was
}

// bound shortens the error of a state so that those of all resources fit.
func (s *slice) bound(state enov1.ResourceState) enov1.ResourceState {
	if state.ReconciliationError == nil || s == nil || s.count == 0 {
		return state
	}
	if most := maxErrors / s.count; len(*state.ReconciliationError) > most {
		text := krm.Shorten(*state.ReconciliationError, max(most-len("…"), 0))
		state.ReconciliationError = &text
	}

	return state
}
