package delivery

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/decide/delivery/pruning"
)

// maxNamed is how many objects a condition names.
const maxNamed = 5

// A pruneSet is what a synthesis would delete that no user asked to delete.
type pruneSet struct {
	pruning.Counts

	objects []prunedObject
	digest  string
	// confirmed is the value of the annotation that allowed it.
	confirmed string
	// blocked is the reason why it waits for a confirmation, "" if it does not.
	blocked string
}

// A prunedObject is an object that a synthesis would delete. If it is delivered again, and
// dropped again, that is another deletion, which must be confirmed again.
type prunedObject struct {
	decide.Identity

	// droppedBy is the uuid of the synthesis that dropped it, "" if it is not recorded.
	droppedBy string
}

// pruned is what a synthesis would delete that no user asked to delete, and whether some
// of it is not deleted yet.
func (v *view) pruned() (set pruneSet, pending bool) {
	for _, it := range v.items {
		switch {
		case hidden(it):
			if twice, ok := it.problem.(*duplicateError); !ok || !twice.tombstone { //nolint:errorlint // it is never wrapped
				set.Manifests++
			}
		case !it.Tombstone:
			set.Manifests++
		case it.IsGuarded():
			pending = pending || !it.state.Deleted
			// Those that are gone are among them, or the digest would change on the way.
			set.objects = append(set.objects, prunedObject{it.Identity, it.DroppedBy})
		}
	}
	set.Deletes, set.digest = len(set.objects), digestOf(set.objects)

	return set, pending
}

// covers reports whether a confirmation of this set holds for another one: for the same
// deletions, or fewer.
func (p pruneSet) covers(other pruneSet, confirmed string) bool {
	return confirmed != "" && confirmed == p.confirmed &&
		!slices.ContainsFunc(other.objects, func(o prunedObject) bool { return !slices.Contains(p.objects, o) })
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

// message names what is blocked, and how to confirm it.
func (p pruneSet) message(g pruning.Guard) string {
	all := make([]decide.Identity, len(p.objects))
	for i, o := range p.objects {
		all[i] = o.Identity
	}

	return clip(fmt.Sprintf("%s: %s; to delete them, set the annotation %s to %q",
		g.Explain(p.Counts), firstOf(all), enov1.AnnotationConfirmPrune, p.digest))
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
