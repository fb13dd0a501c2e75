package compositions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/identity"
)

// A SynthesisState is how far a synthesis has come.
type SynthesisState string

// States of a synthesis, in the order in which it goes through them. Failed and
// Canceled ones go no further.
const (
	SynthesisFailed       SynthesisState = "Failed"
	SynthesisCanceled     SynthesisState = "Canceled"
	SynthesisSynthesizing SynthesisState = "Synthesizing"
	SynthesisReconciling  SynthesisState = "Reconciling"
	SynthesisNotReady     SynthesisState = "NotReady"
	SynthesisReady        SynthesisState = "Ready"
)

func synthesisState(s *enov1.Synthesis) SynthesisState {
	switch {
	case s.Failed():
		return SynthesisFailed
	case s.Canceled != nil:
		return SynthesisCanceled
	case s.Synthesized == nil:
		return SynthesisSynthesizing
	case s.Reconciled == nil:
		return SynthesisReconciling
	case s.Ready == nil:
		return SynthesisNotReady
	default:
		return SynthesisReady
	}
}

// Text is the state in words.
func (s SynthesisState) Text() string {
	if s == SynthesisNotReady {
		return "not ready"
	}

	return strings.ToLower(string(s))
}

// A ResourceStateWord is what has become of a manifest.
type ResourceStateWord string

// States of resources. Ready and Deleted ones are well.
const (
	ResourceReady    ResourceStateWord = "Ready"
	ResourceNotReady ResourceStateWord = "NotReady"
	ResourceWaiting  ResourceStateWord = "Waiting"
	ResourceError    ResourceStateWord = "Error"
	ResourceDeleting ResourceStateWord = "Deleting"
	ResourceDeleted  ResourceStateWord = "Deleted"
)

// resourceState is the state of one manifest. going says that it is to be
// deleted, by its tombstone or with the composition.
func resourceState(s enov1.ResourceState, going bool) ResourceStateWord {
	switch {
	case s.Deleted:
		return ResourceDeleted
	case s.ReconciliationError != nil && *s.ReconciliationError != "":
		return ResourceError
	case going:
		return ResourceDeleting
	case !s.Reconciled:
		return ResourceWaiting
	case s.Ready == nil:
		return ResourceNotReady
	default:
		return ResourceReady
	}
}

// Well reports whether nothing is left to do.
func (s ResourceStateWord) Well() bool { return s == ResourceReady || s == ResourceDeleted }

// Text is the state in words, "" for one that is ready.
func (s ResourceStateWord) Text() string {
	switch s {
	case ResourceReady:
		return ""
	case ResourceNotReady:
		return "reconciled, not ready"
	case ResourceDeleting:
		return "being deleted"
	case ResourceDeleted:
		return "gone"
	default:
		return strings.ToLower(string(s))
	}
}

// A Manifest is one manifest of a synthesis, and what has become of it.
type Manifest struct {
	Ref identity.Ref
	ID  identity.Identity
	// Object is what the manifest says, nil if it cannot be read; then err says
	// why.
	Object map[string]any
	Err    error
	// Tombstone says that the manifest is there so that the object goes.
	Tombstone bool
	State     enov1.ResourceState
}

// Manifests are those of a synthesis in the order of its slices. Slices that are
// not there are told by their names.
func (d *Objects) Manifests(c *enov1.Composition, s *enov1.Synthesis) (all []Manifest, missing []string) {
	if s == nil {
		return nil, nil
	}

	known := map[identity.Identity]bool{}

	for _, ref := range s.ResourceSlices {
		slice := d.Slices[types.NamespacedName{Namespace: c.Namespace, Name: RefName(ref)}]
		if slice == nil {
			missing = append(missing, RefName(ref))

			continue
		}

		for i, m := range slice.Spec.Resources {
			one := d.ReadManifest(m, known)
			if i < len(slice.Status.Resources) {
				one.State = slice.Status.Resources[i]
			}

			all = append(all, one)
		}
	}

	return all, missing
}

// ReadManifest reads one of the manifests of a synthesis. known are those before it.
func (d *Objects) ReadManifest(m enov1.Manifest, known map[identity.Identity]bool) Manifest {
	one := Manifest{Tombstone: m.Deleted}
	if err := json.Unmarshal([]byte(m.Manifest), &one.Object); err != nil {
		one.Err = fmt.Errorf("cannot read the manifest: %w", err)
		one.Object = nil
	}

	one.ID, _ = identity.Of(one.Object).Normalize(d.Scopes)
	one.ID = identity.Number(one.ID, known)
	known[one.ID] = true

	if one.Ref = identity.RefOf(one.Object); one.Ref.Kind == "" {
		one.Ref.Kind = "(no kind)"
	}

	one.Ref.Namespace = one.ID.Namespace

	return one
}

// WithoutKept removes the tombstones of objects that a manifest is about, as delivery
// does: synthesis does not know which kinds are cluster-scoped. Of two tombstones of one
// object, the first counts.
func WithoutKept(all []Manifest) []Manifest {
	kept := identity.Kept{}

	for _, one := range all {
		if !one.Tombstone {
			kept.Add(one.ID)
		}
	}

	return slices.DeleteFunc(all, func(one Manifest) bool {
		if !one.Tombstone || one.Err != nil {
			return false
		}

		again := !kept.LeavesTombstone(one.ID)
		kept.Add(one.ID)

		return again
	})
}

// annotation is one of a manifest, "" if it is not there.
func (d Manifest) annotation(name string) string {
	meta, _ := d.Object["metadata"].(map[string]any)
	all, _ := meta["annotations"].(map[string]any)
	text, _ := all[name].(string)

	return text
}

// group is when the manifest has its turn, and false if it does not matter.
func (d Manifest) group() (int, bool) {
	n, err := strconv.Atoi(d.annotation(enov1.AnnotationReadinessGroup))

	return n, err == nil
}

// waitsFor is the first manifest that has its turn before another and is not
// ready, nil if there is none.
func (d Manifest) waitsFor(all []Manifest) *Manifest {
	turn, ok := d.group()
	if !ok {
		return nil
	}

	for i, other := range all {
		before, ok := other.group()
		if ok && before < turn && !other.Tombstone && !resourceState(other.State, false).Well() {
			return &all[i]
		}
	}

	return nil
}

// Syntheses are those that a status knows, newest first. The one in flight comes
// first, if there is one.
func Syntheses(c *enov1.Composition) []*enov1.Synthesis {
	var all []*enov1.Synthesis

	for _, s := range []*enov1.Synthesis{c.Status.InFlightSynthesis, c.Status.CurrentSynthesis, c.Status.PreviousSynthesis} {
		if s != nil {
			all = append(all, s)
		}
	}

	for i := range c.Status.History {
		all = append(all, &c.Status.History[i])
	}

	return all
}

// ShortUUID is as much of one as people compare.
func ShortUUID(uuid string) string {
	const enough = 8

	if len(uuid) <= enough {
		return uuid
	}

	return uuid[:enough]
}
