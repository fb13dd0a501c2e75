package delivery

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// A memory is what this process knows about an object. It outlives the synthesis.
type memory struct {
	driftMemory

	// desired was applied last, and what the object became then.
	desired text
	uid     types.UID
	version string
	own     string
	// ours : something of it was held by us then. An earlier process may have left
	// word of that, and of nothing else.
	ours bool
	at   place
	// due is when it is reconciled even if it was not changed.
	due time.Time
	// tracked : the object is watched.
	tracked bool
	// wrote : this process has made or changed the object. Anybody may ask.
	wrote atomic.Bool

	// removed is the object that a Patch was about to delete in a synthesis.
	removed struct {
		slices string
		uid    types.UID
	}

	// replacing is since when the object is being deleted to be created again, zero if it
	// is not.
	replacing time.Time

	// judged is what overrides made of the manifest last, nil if there are none.
	// turned : what they made of it then has them want something else.
	judged *judgement
	turned bool

	// observed is which generation the status is about while readiness is waited for.
	// outdated : it did not follow, and is judged all the same.
	observed decide.Observation
	outdated bool
	// limited is set if a readiness expression exceeds a limit, and that was reported.
	limited bool

	damper decide.Damper
	// rival is who keeps changing the object, once that was found out.
	rival string
	// told is what the last event said.
	told string
}

// left takes the word of an earlier process for which object was delivered.
func (m *memory) left(uid types.UID) {
	if m.uid == "" && uid != "" {
		m.uid, m.ours = uid, true
	}
}

// created notes that an object was created here, which nothing in it may say.
func (m *memory) created(live *unstructured.Unstructured, verb decide.Verb) {
	if live != nil && verb == decide.Create {
		m.ours = true
	}
}

// isOurs says whether an object is the one that was delivered.
func (m *memory) isOurs(live *unstructured.Unstructured) bool {
	return live != nil && m.ours && m.uid == live.GetUID()
}

// removedIn is the object that a Patch was about to delete in a synthesis, "" if none.
func (m *memory) removedIn(slices string) types.UID {
	if m.removed.slices != slices {
		return ""
	}

	return m.removed.uid
}
