package model

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
)

// LastAppliedIn is before, nil if there are no scopes to use it for.
func (i *Item) LastAppliedIn(scopes []fields.Scope) *unstructured.Unstructured {
	if len(scopes) == 0 {
		return nil
	}

	return i.LastApplied()
}

// TakesOver reports whether fields of other managers may have to be taken over: because
// the manifest drops something, or asks for whole scopes.
func (i *Item) TakesOver(scopes []fields.Scope, before *unstructured.Unstructured) bool {
	return len(scopes) > 0 && (i.Mode == fields.Whole || before != nil && decide.Drops(before.Object, i.Object.Object))
}

// LastApplied is what was applied before what is desired now, nil if there is no
// telling.
func (i *Item) LastApplied() *unstructured.Unstructured {
	before := i.Previous
	if i.Memory.Desired != "" && i.Memory.Desired != i.Desired() {
		before = i.Memory.Desired
	}
	// Fields that overrides have removed are left to other field managers. If it is unknown what was
	// applied, the live object would show that they were, and must not be read.
	if before == "" && i.Releases() {
		return i.Object
	}

	return i.Release(before.Unpack())
}

// WithResource is the item with another resource, which was made for a version of the live
// object. Its state stays that of the view.
func (i *Item) WithResource(r *decide.Resource, t Packed, base string) *Item {
	return &Item{
		Content: Content{Resource: r, Packed: t, Original: i.Original, BaseVersion: base},
		Place:   i.Place, Obstacle: Obstacle{Problem: i.Problem}, History: i.History, Order: Order{SupersededBy: i.SupersededBy},
	}
}

// Redact is an error without the values of a Secret.
func (i *Item) Redact(err error, live *unstructured.Unstructured) error {
	return kube.Discreet(err, i.SecretValues(live)...)
}

// SecretValues is everything that an error about an item may quote and that may be a
// Secret: what is wanted, what is there, and what a patch would put there.
func (i *Item) SecretValues(live *unstructured.Unstructured) []map[string]any {
	all := []map[string]any{i.Object.Object}
	if live != nil {
		all = append(all, live.Object)
	}
	if i.IsPatch() {
		all = append(all, kube.PatchedObject(i.GVK, i.Ops))
	}

	return all
}

// Unpacked is the item with its object, for the worker that has it. Its state stays that of the
// view.
func (i *Item) Unpacked() *Item {
	r := *i.Resource
	r.Object = i.Packed.Unpack()

	return i.WithResource(&r, i.Packed, "")
}

// Desired is the desired object, which is remembered once it was applied. Of an object that is
// patched, it only has the identity.
func (i *Item) Desired() Packed { return i.Packed + Packed(i.Ops) }

// An Item is one manifest of a view. What differs between its states is in its Content:
//
//	invalid      Resource is nil, and Invalid is the text
//	packed       Resource has no object, and Packed is it; this is the item of a view
//	unpacked     Resource has the object; this is the copy of a worker
//	overridden   BaseVersion is set, too; this is the copy of a worker after its overrides
type Item struct {
	Content
	Place
	Obstacle
	History
	Order

	// State is guarded by the view. Copies have none.
	State enov1.ResourceState
}

// A Content is the object that an item delivers.
type Content struct {
	// Resource has no object while it is in the view: Packed is it.
	*decide.Resource

	Packed Packed
	// Invalid is the manifest if it cannot be read, nil otherwise.
	Invalid *enov1.Manifest
	// Original is the resource of the view: workers have copies with their objects.
	Original *decide.Resource
	// BaseVersion is the version of the live object that overrides have made the item for,
	// "" if there are none.
	BaseVersion string
}

// A Place is where an item is: Position in the view, and Index in the Slice to which its state is
// written.
type Place struct {
	Position int
	Slice    *Slice
	Index    int
}

// An Obstacle keeps an item from being delivered at all: Problem is the reason. Foreign is true if
// another delivery has the item, or if it is unknown which one does: then that is the problem.
type Obstacle struct {
	Problem error
	Foreign bool
}

// A History is what was delivered before.
type History struct {
	// Previous is what the synthesis before desired, "" if it is not known.
	Previous Packed
	// Memory is only used by the worker that has the item.
	Memory *Memory
}

// An Order is how an item relates to other items of the view.
type Order struct {
	// SupersededBy are the places of items that decide about the same fields of the same
	// object later. Once one of them may run, this one does not run again.
	SupersededBy []int
	// chained is whether other items are about the same object.
	chained bool
	// PruneNow is true for a tombstone that a user wants to have deleted now.
	PruneNow bool
}

// IsInvalid are resources that nothing can be done about.
func IsInvalid(i *Item) bool { return i.Resource == nil }

// A DuplicateError is about a manifest that another one stands for.
type DuplicateError struct {
	id        decide.Identity
	Tombstone bool
}

func (e *DuplicateError) Error() string {
	return e.id.String() + " is in this synthesis twice: have the synthesizer write it once"
}
