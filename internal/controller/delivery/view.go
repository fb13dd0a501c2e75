package delivery

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

// A view is the current synthesis of a composition, in memory. Its manifests are
// read once.
type view struct {
	version

	name types.NamespacedName
	// owner is what events are about.
	owner *enov1.Composition
	items []*item
	byID  map[decide.Identity]*item
	// parts are the slices, by name.
	parts map[string]*slice
	// reloadAt is when the slices are read again because some of them were missing, zero if none was.
	reloadAt time.Time
	// pruning is what the synthesis would delete.
	pruning pruneSet
	// rescoped is true once a kind has turned out to be cluster-scoped: see outdated.
	rescoped atomic.Bool
	// shared is true if another delivery has some of the manifests.
	shared bool
	// wants are the objects that are to be there, whoever delivers them.
	wants []decide.Identity

	mu       sync.Mutex
	schedule *decide.Schedule
	// next is the view that has replaced this one, nil if none has.
	next *view
	// tombstones are the places of items whose objects are to be deleted, and failing of
	// those that cannot be applied. rejected is true if there were both when the condition
	// PruneWaiting was last looked at.
	tombstones []int
	failing    map[int]bool
	rejected   bool
	// report has its own lock: successive views of a composition share it.
	report *report
	// drift has its own lock, too. Views of one synthesis share it.
	drift *driftReport
	// corrections has its own lock, too. All views of a composition share it.
	corrections *correctionLog
	// denials has its own lock, too. Views of a composition with the same account share it.
	denials *denials
	// about is what expressions are told about the composition.
	about *metav1.ObjectMeta
}

// adopt has the items remember what those of an earlier view did.
func (v *view) adopt(old *view) {
	if old == nil {
		return
	}
	for id, was := range old.byID {
		now, ok := v.byID[id]
		if !ok {
			continue
		}
		now.memory = was.memory
		if now.text == was.text {
			now.text = was.text // one of them is enough
		}
		if old.slices == v.slices {
			now.previous = was.previous
		} else {
			now.previous = was.text
		}
	}
	if old.uid == v.uid {
		v.shareEvents(old)
		v.report, v.corrections = old.report, old.corrections
		if old.slices == v.slices {
			v.drift = old.drift
		}
		if old.account == v.account {
			v.denials = old.denials
			v.denials.keep(v.byID)
		}
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	v.takeStates(old)
}

// resources are those of all items, nil where there is none to be understood.
func (v *view) resources() []*decide.Resource {
	all := make([]*decide.Resource, len(v.items))
	for i, it := range v.items {
		all[i] = it.Resource
	}

	return all
}

// done says whether an item needs no more work for others to begin.
func (v *view) done(s enov1.ResourceState) bool {
	if v.deleting {
		return s.Deleted
	}

	return s.Ready != nil
}

// begin marks what an earlier process has done already, and returns what there is
// to do now. Whoever is marked as gone is looked at again if this process may
// have made it since.
func (v *view) begin() []*item {
	v.mu.Lock()
	defer v.mu.Unlock()
	gone := func(it *item) bool {
		return it.state.Deleted && !it.memory.wrote.Load() && (v.deleting || it.Tombstone)
	}
	for _, it := range v.items {
		if hidden(it) {
			continue
		}
		if (v.deleting || it.Tombstone) && !gone(it) {
			it.state.Deleted = false
		}
		v.advance(it)
		v.noteFailure(it)
	}

	return slices.DeleteFunc(slices.Clone(v.items), func(it *item) bool {
		return hidden(it) || gone(it) || !v.mayRun(it)
	})
}

// open says whether an item may be worked on.
func (v *view) open(it *item) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.mayRun(it)
}

// goes says whether an item is to go, and has not gone yet.
func (v *view) goes(it *item) bool {
	return !hidden(it) && (v.deleting || it.Tombstone) && !it.IsPatch() && !it.state.Deleted
}

// removes reports whether objects are to be deleted, or may have to be, in order to create
// them again. It is for views that nothing works on yet.
func (v *view) removes() bool {
	return slices.ContainsFunc(v.items, func(it *item) bool { return v.goes(it) || !hidden(it) && !v.deleting && it.MayReplace() })
}

// unproven says whether something is to go of which nobody left word that it was
// delivered. It is for whoever makes the view.
func (v *view) unproven() bool {
	return slices.ContainsFunc(v.items, func(it *item) bool { return v.goes(it) && !it.memory.ours })
}

// states are those of the items of a slice.
func (v *view) states(s *slice) []enov1.ResourceState {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]enov1.ResourceState, s.count)
	for _, it := range v.items {
		if it.slice == s {
			all[it.index] = it.state
		}
	}

	return all
}

// isReconciled reports whether every item of a slice is reconciled.
func (v *view) isReconciled(s *slice) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return !slices.ContainsFunc(v.items, func(it *item) bool { return it.slice == s && !it.state.Reconciled })
}

// isReady says whether an item was ready once.
func (v *view) isReady(it *item) bool {
	v.mu.Lock()
	defer v.mu.Unlock()

	return v.items[it.place].state.Ready != nil
}

// want notes which objects are to be there.
func (v *view) want() {
	if v.deleting {
		return
	}
	for _, it := range v.byID {
		if !it.Tombstone && !it.IsPatch() && !it.DisableReconciliation {
			v.wants = append(v.wants, claimsOf(it.Resource)...)
		}
	}
}

// enter makes an item known by its identity. Of two with one identity the first
// counts, and of a tombstone and a manifest the manifest.
func (v *view) enter(it *item) {
	if hidden(it) {
		return
	}
	it.Identity = identity.Number(it.Identity, v.byID) // several Patches may change one object
	first, twice := v.byID[it.Identity]
	if !twice {
		v.byID[it.Identity] = it

		return
	}
	if first.Tombstone && !it.Tombstone {
		v.byID[it.Identity] = it
		first, it = it, first
	}
	it.problem = &duplicateError{id: first.Identity, tombstone: it.Tombstone}
	it.Resource = nil
}

// requestFirst marks the tombstones that a user wants to have deleted now.
func (v *view) requestFirst(c *enov1.Composition) {
	request := decide.ParsePruneFirst(c.Annotations[enov1.AnnotationPruneFirst])
	if request.Synthesis != c.Status.CurrentSynthesis.UUID {
		return
	}
	for _, id := range request.Objects {
		it := v.byID[id]
		if it == nil {
			id.Namespace = "" // the kind may be cluster-scoped
			it = v.byID[id]
		}
		if it != nil && it.Prunes() {
			it.Prune, it.first = enov1.PruneFirst, true
		}
	}
}

// claimsOf are the identities under which no other composition may delete the object of
// a resource. As long as the scope of its kind is not known, there are two.
func claimsOf(r *decide.Resource) []decide.Identity {
	if r.Unscoped {
		return []decide.Identity{r.Identity, r.ClusterScoped()}
	}

	return []decide.Identity{r.Identity}
}

// newEmptyView returns a view of a composition without manifests.
func newEmptyView(c *enov1.Composition, of version) *view {
	return &view{
		name: types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, version: of, byID: map[decide.Identity]*item{}, parts: map[string]*slice{},
		owner: &enov1.Composition{
			TypeMeta:   metav1.TypeMeta{APIVersion: enov1.GroupVersion.String(), Kind: enov1.CompositionKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, UID: c.UID},
		},
		failing: map[int]bool{}, report: newReport(), drift: newDriftReport(), corrections: &correctionLog{}, denials: newDenials(), about: about(c),
	}
}

// addSlice adds the manifests of a slice, each as it is read.
func (v *view) addSlice(from *enov1.ResourceSlice, read func(enov1.Manifest) (*decide.Resource, error)) {
	s := newSlice(from)
	v.parts[s.Name] = s
	for index, manifest := range from.Spec.Resources {
		it := &item{slice: s, index: index, place: len(v.items), memory: &memory{}}
		it.Resource, it.problem = read(manifest)
		if !hidden(it) {
			it.of, it.text = it.Resource, pack(it.Resource)
		}
		if s.initialized {
			it.state = from.Status.Resources[index] //nolint:gosec // an initialized slice has a state for each resource
			it.memory.left(it.state.UID)
		}
		v.items = append(v.items, it)
		v.enter(it)
	}
}

// complete finds out how the manifests of a view depend on each other, once it has all of them.
func (v *view) complete(c *enov1.Composition, all []enov1.ResourceSlice) {
	v.requestFirst(c)
	v.shared = slices.ContainsFunc(v.items, func(it *item) bool { return it.elsewhere })
	v.chain()
	v.keepUnread(all)
	for _, it := range v.items {
		if !hidden(it) && it.Prunes() {
			v.tombstones = append(v.tombstones, it.place)
		}
	}
	v.schedule = decide.NewSchedule(v.resources(), v.deleting)
	v.schedule.Unusable(v.unusable())
}
