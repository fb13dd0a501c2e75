package delivery

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/fields"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/kube"
)

// beforeIn is before, nil if there are no scopes to use it for.
func (i *item) beforeIn(scopes []fields.Scope) *unstructured.Unstructured {
	if len(scopes) == 0 {
		return nil
	}

	return i.before()
}

// takesOver reports whether fields of other managers may have to be taken over: because
// the manifest drops something, or asks for whole scopes.
func (i *item) takesOver(scopes []fields.Scope, before *unstructured.Unstructured) bool {
	return len(scopes) > 0 && (i.Mode == fields.Whole || before != nil && decide.Drops(before.Object, i.Object.Object))
}

// before is what was applied before what is desired now, nil if there is no
// telling.
func (i *item) before() *unstructured.Unstructured {
	before := i.previous
	if i.memory.desired != "" && i.memory.desired != i.desires() {
		before = i.memory.desired
	}
	// What overrides have removed is left to others. If nobody knows what was applied,
	// the live object would tell that it was, and must not be asked.
	if before == "" && i.Releases() {
		return i.Object
	}

	return i.Release(before.object())
}

// as is the item with another resource, which was made for a version of the live
// object. Its state stays that of the view.
func (i *item) as(r *decide.Resource, t text, base string) *item {
	return &item{Resource: r, of: i.of, text: t, place: i.place, slice: i.slice, index: i.index, problem: i.problem, previous: i.previous, rivals: i.rivals, memory: i.memory, base: base}
}

// discreet is an error without the values of a Secret.
func (i *item) discreet(err error, live *unstructured.Unstructured) error {
	return kube.Discreet(err, i.secrets(live)...)
}

// secrets is everything that an error about an item may quote and that may be a
// Secret: what is wanted, what is there, and what a patch would put there.
func (i *item) secrets(live *unstructured.Unstructured) []map[string]any {
	all := []map[string]any{i.Object.Object}
	if live != nil {
		all = append(all, live.Object)
	}
	if i.IsPatch() {
		all = append(all, kube.PatchedObject(i.GVK, i.Ops))
	}

	return all
}

// unpacked is the item with its object, for whoever works on it. Its state stays
// that of the view.
func (i *item) unpacked() *item {
	r := *i.Resource
	r.Object = i.text.object()

	return i.as(&r, i.text, "")
}

// desires is what the object is to be, which is what is remembered when it is. An
// object that is patched only says which.
func (i *item) desires() text { return i.text + text(i.Ops) }

// An item is one manifest of a view.
type item struct {
	// Resource has no object while it is in the view: text is it.
	*decide.Resource

	text text
	// unread is the manifest if it is hidden, nil otherwise.
	unread *enov1.Manifest
	// of is what the view has: those who work on it have it with its object.
	of *decide.Resource
	// place is that in the view, and slice and index are where its state is written.
	place int
	slice *slice
	index int
	// problem is why it cannot be delivered at all. elsewhere : somebody else delivers
	// it, or there is no telling who, which is the problem then.
	problem   error
	elsewhere bool
	// previous is what the synthesis before desired, "" if it is not known.
	previous text
	// rivals are the places of items that decide about the same fields of the same
	// object later. Once one of them may run, this one does not run again.
	rivals []int
	// chained is whether other items are about the same object.
	chained bool
	// memory is only used by whoever works on the item.
	memory *memory
	// first is true for a tombstone that a user wants to have deleted now.
	first bool
	// base is the version of the live object that overrides have made the item for,
	// "" if there are none.
	base string

	// state is guarded by the view.
	state enov1.ResourceState
}

// hidden are resources that nothing can be done about.
func hidden(i *item) bool { return i.Resource == nil }

// A duplicateError is about a manifest that another one stands for.
type duplicateError struct {
	id        decide.Identity
	tombstone bool
}

func (e *duplicateError) Error() string {
	return e.id.String() + " is in this synthesis twice: have the synthesizer write it once"
}
