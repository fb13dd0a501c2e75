package delivery

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

func (s SynthesisState) text() string {
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

func (s ResourceStateWord) well() bool { return s == ResourceReady || s == ResourceDeleted }

func (s ResourceStateWord) text() string {
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

// A delivered is one manifest of a synthesis, and what has become of it.
type delivered struct {
	ref identity.Ref
	id  identity.Identity
	// object is what the manifest says, nil if it cannot be read; then err says
	// why.
	object map[string]any
	err    error
	// tombstone says that the manifest is there so that the object goes.
	tombstone bool
	state     enov1.ResourceState
}

// manifests are those of a synthesis in the order of its slices. Slices that are
// not there are told by their names.
func (d *deliveries) manifests(c *enov1.Composition, s *enov1.Synthesis) (all []delivered, missing []string) {
	if s == nil {
		return nil, nil
	}

	known := map[identity.Identity]bool{}

	for _, ref := range s.ResourceSlices {
		slice := d.slices[types.NamespacedName{Namespace: c.Namespace, Name: refName(ref)}]
		if slice == nil {
			missing = append(missing, refName(ref))

			continue
		}

		for i, m := range slice.Spec.Resources {
			one := d.readManifest(m, known)
			if i < len(slice.Status.Resources) {
				one.state = slice.Status.Resources[i]
			}

			all = append(all, one)
		}
	}

	return all, missing
}

// readManifest reads one of the manifests of a synthesis. known are those before it.
func (d *deliveries) readManifest(m enov1.Manifest, known map[identity.Identity]bool) delivered {
	one := delivered{tombstone: m.Deleted}
	if err := json.Unmarshal([]byte(m.Manifest), &one.object); err != nil {
		one.err = fmt.Errorf("cannot read the manifest: %w", err)
		one.object = nil
	}

	one.id, _ = identity.Of(one.object).Normalize(d.scopes)
	one.id = identity.Number(one.id, known)
	known[one.id] = true

	if one.ref = identity.RefOf(one.object); one.ref.Kind == "" {
		one.ref.Kind = "(no kind)"
	}

	one.ref.Namespace = one.id.Namespace

	return one
}

// withoutKept removes the tombstones of objects that a manifest is about, as delivery
// does: synthesis does not know which kinds are cluster-scoped. Of two tombstones of one
// object, the first counts.
func withoutKept(all []delivered) []delivered {
	kept := identity.Kept{}

	for _, one := range all {
		if !one.tombstone {
			kept.Add(one.id)
		}
	}

	return slices.DeleteFunc(all, func(one delivered) bool {
		if !one.tombstone || one.err != nil {
			return false
		}

		again := !kept.LeavesTombstone(one.id)
		kept.Add(one.id)

		return again
	})
}

// annotation is one of a manifest, "" if it is not there.
func (d delivered) annotation(name string) string {
	meta, _ := d.object["metadata"].(map[string]any)
	all, _ := meta["annotations"].(map[string]any)
	text, _ := all[name].(string)

	return text
}

// group is when the manifest has its turn, and false if it does not matter.
func (d delivered) group() (int, bool) {
	n, err := strconv.Atoi(d.annotation(enov1.AnnotationReadinessGroup))

	return n, err == nil
}

// waitsFor is the first manifest that has its turn before another and is not
// ready, nil if there is none.
func (d delivered) waitsFor(all []delivered) *delivered {
	turn, ok := d.group()
	if !ok {
		return nil
	}

	for i, other := range all {
		before, ok := other.group()
		if ok && before < turn && !other.tombstone && !resourceState(other.state, false).well() {
			return &all[i]
		}
	}

	return nil
}

// syntheses are those that a status knows, newest first. The one in flight comes
// first, if there is one.
func syntheses(c *enov1.Composition) []*enov1.Synthesis {
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

// shortUUID is as much of one as people compare.
func shortUUID(uuid string) string {
	const enough = 8

	if len(uuid) <= enough {
		return uuid
	}

	return uuid[:enough]
}
