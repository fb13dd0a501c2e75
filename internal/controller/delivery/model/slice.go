package model

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

// A Slice is where states are written.
type Slice struct {
	types.NamespacedName

	// mu is held while the slice is written.
	mu    sync.Mutex
	Count int
	// Initialized is true if its status has a place for each resource. version is that of the slice
	// while it has not.
	Initialized bool
	Version     string

	// RestUntil is when it may be written again, zero if it has no state to be written yet.
	// It is guarded by the statusWriter.
	RestUntil time.Time

	// UUID is spec.synthesisUUID.
	UUID string
	// Events distinguishes changes of other clients from those of this process. Successive views
	// share it.
	Events *SliceEvents
	// Rejected is why the slice of this name does not belong to the composition, "" if it does.
	Rejected string
}

// NewSlice returns a slice as it was read.
func NewSlice(s *enov1.ResourceSlice) *Slice {
	return &Slice{
		NamespacedName: client.ObjectKeyFromObject(s), Count: len(s.Spec.Resources), Version: s.ResourceVersion,
		Initialized: len(s.Status.Resources) == len(s.Spec.Resources), UUID: s.Spec.SynthesisUUID,
		Events: &SliceEvents{},
	}
}

// Lock is held while the slice is written.
func (s *Slice) Lock() { s.mu.Lock() }

// Unlock ends Lock.
func (s *Slice) Unlock() { s.mu.Unlock() }

// Reject records why the slice does not belong to its composition, "" if it does, and returns what was
// recorded before.
func (s *Slice) Reject(problem string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.Rejected
	s.Rejected = problem

	return was
}

// Bound shortens the error of a state so that those of all resources fit.
func (s *Slice) Bound(state enov1.ResourceState) enov1.ResourceState {
	if state.ReconciliationError == nil || s == nil || s.Count == 0 {
		return state
	}
	if most := maxErrors / s.Count; len(*state.ReconciliationError) > most {
		text := krm.Shorten(*state.ReconciliationError, max(most-len("…"), 0))
		state.ReconciliationError = &text
	}

	return state
}
