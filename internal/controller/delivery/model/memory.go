package model

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/controller/delivery/watch"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/observed"
)

// A Memory is what this process knows about an object. It outlives the synthesis.
type Memory struct {
	driftMemory
	observed.Write

	// Desired was applied last, and Write is what the object became then.
	Desired Packed
	// Owned is true if we owned something of it then. An earlier process may have left a record of
	// that, and of nothing else.
	Owned    bool
	Location watch.Location
	// Due is when it is reconciled even if it was not changed.
	Due time.Time
	// Watched is true if the object is watched.
	Watched bool
	// Written is true if this process has created or changed the object. It may be read without a
	// lock.
	Written atomic.Bool

	// Removed is the object that a Patch was about to delete in a synthesis.
	Removed struct {
		Slices string
		UID    types.UID
	}

	// Replacing is since when the object is being deleted to be created again, zero if it
	// is not.
	Replacing time.Time

	// Evaluated is what overrides made of the manifest last, nil if there are none.
	// Reverting is true if the result then makes them want something else.
	Evaluated *Evaluation
	Reverting bool

	// Observed is which generation the status is about while readiness is waited for. outdated is
	// true if it did not follow, and decides about readiness all the same.
	Observed decide.Observation
	Outdated bool
	// Limited is set if a readiness expression exceeds a limit, and that was reported.
	Limited bool

	Damper decide.Damper
	// OtherWriter is the client that keeps changing the object, once that is known.
	OtherWriter string
	// LastEvent is the message of the last event.
	LastEvent string
}

// RestoreUID sets the UID that an earlier process recorded for the object that it delivered.
func (m *Memory) RestoreUID(uid types.UID) {
	if m.UID == "" && uid != "" {
		m.UID, m.Owned = uid, true
	}
}

// Created records that an object was created here, which the object itself may not show.
func (m *Memory) Created(live *unstructured.Unstructured, verb decide.Verb) {
	if live != nil && verb == decide.Create {
		m.Owned = true
	}
}

// IsOwned reports whether an object is the one that was delivered.
func (m *Memory) IsOwned(live *unstructured.Unstructured) bool {
	return live != nil && m.Owned && m.UID == live.GetUID()
}

// RemovedIn is the object that a Patch was about to delete in a synthesis, "" if none.
func (m *Memory) RemovedIn(slices string) types.UID {
	if m.Removed.Slices != slices {
		return ""
	}

	return m.Removed.UID
}
