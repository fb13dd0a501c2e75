package model

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
)

// A Composition is the current synthesis of a composition, in memory. Its manifests are
// read once.
type Composition struct {
	Version

	Name types.NamespacedName
	// Owner is what events are about.
	Owner *enov1.Composition
	Items []*Item
	ByID  map[decide.Identity]*Item
	// Slices are the slices, by name.
	Slices map[string]*Slice
	// ReloadAt is when the slices are read again because some of them were missing, zero if none was.
	ReloadAt time.Time
	// PruneSet is what the synthesis would delete.
	PruneSet PruneSet
	// Rescoped is true once a kind has turned out to be cluster-scoped: see outdated.
	Rescoped atomic.Bool
	// Shared is true if another delivery has some of the manifests.
	Shared bool
	// Wants are the objects that must exist, delivered by this delivery or another one.
	Wants []decide.Identity

	mu       sync.Mutex
	schedule *decide.Schedule
	// next is the view that has replaced this one, nil if none has.
	next *Composition
	// tombstones are the places of items whose objects must be deleted, and failing of those that
	// cannot be applied. rejected is true if there were both when the condition PruneWaiting was
	// last computed.
	tombstones []int
	failing    map[int]bool
	rejected   bool
	// OwnershipReport has its own lock: successive views of a composition share it.
	OwnershipReport *OwnershipReport
	// Drift has its own lock, too. Views of one synthesis share it.
	Drift *driftReport
	// Corrections has its own lock, too. All views of a composition share it.
	Corrections *correctionLog
	// Denials has its own lock, too. Views of a composition with the same account share it.
	Denials *denials
	// metadata is what expressions can read of the composition.
	metadata *metav1.ObjectMeta
}

// InheritFrom has the items remember what those of an earlier view did.
func (v *Composition) InheritFrom(old *Composition) {
	if old == nil {
		return
	}
	for id, was := range old.ByID {
		now, ok := v.ByID[id]
		if !ok {
			continue
		}
		now.Memory = was.Memory
		if now.Packed == was.Packed {
			now.Packed = was.Packed // one of them is enough
		}
		if old.SliceNames == v.SliceNames {
			now.Previous = was.Previous
		} else {
			now.Previous = was.Packed
		}
	}
	if old.UID == v.UID {
		v.shareEvents(old)
		v.OwnershipReport, v.Corrections = old.OwnershipReport, old.Corrections
		if old.SliceNames == v.SliceNames {
			v.Drift = old.Drift
		}
		if old.Account == v.Account {
			v.Denials = old.Denials
			v.Denials.keep(v.ByID)
		}
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	v.takeStates(old)
}

// resources are those of all items, nil where there is none to be understood.
func (v *Composition) resources() []*decide.Resource {
	all := make([]*decide.Resource, len(v.Items))
	for i, it := range v.Items {
		all[i] = it.Resource
	}

	return all
}

// done reports whether an item needs no more work for later items to begin.
func (v *Composition) done(s enov1.ResourceState) bool {
	if v.Deleting {
		return s.Deleted
	}

	return s.Ready != nil
}

// Start marks what an earlier process has done already, and returns the items to work on now. An
// item that is marked as deleted is worked on again if this process may have created its object
// since.
func (v *Composition) Start() []*Item {
	v.mu.Lock()
	defer v.mu.Unlock()
	gone := func(it *Item) bool {
		return it.State.Deleted && !it.Memory.Written.Load() && (v.Deleting || it.Tombstone)
	}
	for _, it := range v.Items {
		if IsInvalid(it) {
			continue
		}
		if (v.Deleting || it.Tombstone) && !gone(it) {
			it.State.Deleted = false
		}
		v.advance(it)
		v.noteFailure(it)
	}

	return slices.DeleteFunc(slices.Clone(v.Items), func(it *Item) bool {
		return IsInvalid(it) || gone(it) || !v.mayRun(it)
	})
}

// Open reports whether an item may be worked on.
func (v *Composition) Open(it *Item) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.mayRun(it)
}

// isToDelete reports whether the object of an item must be deleted, and is not deleted yet.
func (v *Composition) isToDelete(it *Item) bool {
	return !IsInvalid(it) && (v.Deleting || it.Tombstone) && !it.IsPatch() && !it.State.Deleted
}

// Deletes reports whether objects must be deleted, or may have to be, in order to create them
// again. It is for views that nothing works on yet.
func (v *Composition) Deletes() bool {
	return slices.ContainsFunc(v.Items, func(it *Item) bool { return v.isToDelete(it) || !IsInvalid(it) && !v.Deleting && it.MayReplace() })
}

// HasUnprovenDeletion reports whether an object must be deleted although no state shows that it was
// delivered. It is for views that nothing works on yet.
func (v *Composition) HasUnprovenDeletion() bool {
	return slices.ContainsFunc(v.Items, func(it *Item) bool { return v.isToDelete(it) && !it.Memory.Owned })
}

// States are those of the items of a slice.
func (v *Composition) States(s *Slice) []enov1.ResourceState {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]enov1.ResourceState, s.Count)
	for _, it := range v.Items {
		if it.Slice == s {
			all[it.Index] = it.State
		}
	}

	return all
}

// IsReconciled reports whether every item of a slice is reconciled.
func (v *Composition) IsReconciled(s *Slice) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return !slices.ContainsFunc(v.Items, func(it *Item) bool { return it.Slice == s && !it.State.Reconciled })
}

// IsReady reports whether an item was ready once.
func (v *Composition) IsReady(it *Item) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.Items[it.Position].State.Ready != nil
}

// CollectWants records which objects must exist.
func (v *Composition) CollectWants() {
	if v.Deleting {
		return
	}
	for _, it := range v.ByID {
		if !it.Tombstone && !it.IsPatch() && !it.DisableReconciliation {
			v.Wants = append(v.Wants, ClaimsOf(it.Resource)...)
		}
	}
}

// Enter makes an item known by its identity. Of two with one identity the first
// counts, and of a tombstone and a manifest the manifest.
func (v *Composition) Enter(it *Item) {
	if IsInvalid(it) {
		return
	}
	it.Identity = identity.Number(it.Identity, v.ByID) // several Patches may change one object
	first, twice := v.ByID[it.Identity]
	if !twice {
		v.ByID[it.Identity] = it

		return
	}
	if first.Tombstone && !it.Tombstone {
		v.ByID[it.Identity] = it
		first, it = it, first
	}
	it.Problem = &DuplicateError{id: first.Identity, Tombstone: it.Tombstone}
	it.Resource = nil
}

// MarkPruneFirst marks the tombstones that a user wants to have deleted now.
func (v *Composition) MarkPruneFirst(c *enov1.Composition) {
	request := decide.ParsePruneFirst(c.Annotations[enov1.AnnotationPruneFirst])
	if request.Synthesis != c.Status.CurrentSynthesis.UUID {
		return
	}
	for _, id := range request.Objects {
		it := v.ByID[id]
		if it == nil {
			id.Namespace = "" // the kind may be cluster-scoped
			it = v.ByID[id]
		}
		if it != nil && it.Prunes() {
			it.Prune, it.PruneNow = enov1.PruneFirst, true
		}
	}
}

// ClaimsOf are the identities under which no other composition may delete the object of
// a resource. As long as the scope of its kind is not known, there are two.
func ClaimsOf(r *decide.Resource) []decide.Identity {
	if r.Unscoped {
		return []decide.Identity{r.Identity, r.ClusterScoped()}
	}

	return []decide.Identity{r.Identity}
}

// New returns a view of a composition without manifests.
func New(c *enov1.Composition, of Version) *Composition {
	return &Composition{
		Name: types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, Version: of, ByID: map[decide.Identity]*Item{}, Slices: map[string]*Slice{},
		Owner: &enov1.Composition{
			TypeMeta:   metav1.TypeMeta{APIVersion: enov1.GroupVersion.String(), Kind: enov1.CompositionKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: c.UID},
		},
		failing: map[int]bool{}, OwnershipReport: NewOwnershipReport(), Drift: newDriftReport(), Corrections: &correctionLog{}, Denials: newDenials(), metadata: ExpressionMetadata(c),
	}
}

// AddSlice adds the manifests of a slice, each as it is read.
func (v *Composition) AddSlice(from *enov1.ResourceSlice, read func(enov1.Manifest) (*decide.Resource, error)) {
	s := NewSlice(from)
	v.Slices[s.Name] = s
	for index, manifest := range from.Spec.Resources {
		it := &Item{Place: Place{Slice: s, Index: index, Position: len(v.Items)}, History: History{Memory: &Memory{}}}
		it.Resource, it.Problem = read(manifest)
		if !IsInvalid(it) {
			it.Original, it.Packed = it.Resource, PackResource(it.Resource)
		}
		if s.Initialized {
			it.State = from.Status.Resources[index] // an initialized slice has a state for each resource
			it.Memory.RestoreUID(it.State.UID)
		}
		v.Items = append(v.Items, it)
		v.Enter(it)
	}
}

// Complete finds out how the manifests of a view depend on each other, once it has all of them.
func (v *Composition) Complete(c *enov1.Composition, all []enov1.ResourceSlice) {
	v.MarkPruneFirst(c)
	v.Shared = slices.ContainsFunc(v.Items, func(it *Item) bool { return it.Foreign })
	v.chain()
	v.keepUnread(all)
	for _, it := range v.Items {
		if !IsInvalid(it) && it.Prunes() {
			v.tombstones = append(v.tombstones, it.Position)
		}
	}
	v.schedule = decide.NewSchedule(v.resources(), v.Deleting)
	v.schedule.Unusable(v.unusable())
}
