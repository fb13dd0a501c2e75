package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/controller/delivery/event"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
)

// maxNamed is how many objects a condition names.
const maxNamed = 5

// A PruneSet is what a synthesis would delete that no user asked to delete.
type PruneSet struct {
	pruning.Counts

	Objects []prunedObject
	Digest  string
	// Confirmed is the value of the annotation that allowed it.
	Confirmed string
	// Blocked is the reason why it waits for a confirmation, "" if it does not.
	Blocked string
}

// A prunedObject is an object that a synthesis would delete. If it is delivered again, and
// dropped again, that is another deletion, which must be confirmed again.
type prunedObject struct {
	decide.Identity

	// droppedBy is the uuid of the synthesis that dropped it, "" if it is not recorded.
	droppedBy string
}

// Pruned is what a synthesis would delete that no user asked to delete, and whether some
// of it is not deleted yet.
func (v *Composition) Pruned() (set PruneSet, pending bool) {
	for _, it := range v.Items {
		switch {
		case IsInvalid(it):
			if twice, ok := it.Problem.(*DuplicateError); !ok || !twice.Tombstone { //nolint:errorlint // it is never wrapped
				set.Manifests++
			}
		case !it.Tombstone:
			set.Manifests++
		case it.IsGuarded():
			pending = pending || !it.State.Deleted
			// Those that are gone are among them, or the digest would change on the way.
			set.Objects = append(set.Objects, prunedObject{it.Identity, it.DroppedBy})
		}
	}
	set.Deletes, set.Digest = len(set.Objects), digestOf(set.Objects)

	return set, pending
}

// Covers reports whether a confirmation of this set holds for another one: for the same
// deletions, or fewer.
func (p PruneSet) Covers(other PruneSet, confirmed string) bool {
	return confirmed != "" && confirmed == p.Confirmed &&
		!slices.ContainsFunc(other.Objects, func(o prunedObject) bool { return !slices.Contains(p.Objects, o) })
}

func digestOf(objects []prunedObject) string {
	all := make([]string, len(objects))
	for i, o := range objects {
		all[i] = fmt.Sprint(o.Group, " ", o.Identity)
		if o.droppedBy != "" {
			all[i] += " " + o.droppedBy
		}
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))

	return hex.EncodeToString(sum[:6])
}

// Message names what is blocked, and how to confirm it.
func (p PruneSet) Message(g pruning.Guard) string {
	all := make([]decide.Identity, len(p.Objects))
	for i, o := range p.Objects {
		all[i] = o.Identity
	}

	return event.Clip(fmt.Sprintf("%s: %s; to delete them, set the annotation %s to %q",
		g.Explain(p.Counts), firstOf(all), enov1.AnnotationConfirmPrune, p.Digest))
}

// firstOf names objects, and how many more there are.
func firstOf(objects []decide.Identity) string {
	var all []string
	for _, id := range objects[:min(len(objects), maxNamed)] {
		all = append(all, id.String())
	}
	if n := len(objects) - maxNamed; n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}

	return strings.Join(all, ", ")
}
