package owners

import (
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
)

// OwnersView is what arbor fields show prints for programs.
type OwnersView struct {
	Objects []OwnedView `json:"objects"`
}

// An OwnedView is one object. Its fields are a flat list, parents first.
type OwnedView struct {
	Object   identity.Ref  `json:"object"`
	Managers []ManagerView `json:"managers"`
	Fields   []FieldView   `json:"fields"`
}

// A ManagerView is one entry of managedFields.
type ManagerView struct {
	Manager     string           `json:"manager"`
	Operation   fields.Operation `json:"operation"`
	Subresource string           `json:"subresource,omitempty"`
	APIVersion  string           `json:"apiVersion"`
	Time        string           `json:"time,omitempty"`
	// Fields is how many it holds.
	Fields int `json:"fields"`
}

// A FieldView is one field or item.
type FieldView struct {
	Path string      `json:"path"`
	Kind fields.Kind `json:"kind"`
	// State sums up the field and all that is in it.
	State fields.State `json:"state"`
	// Holders have the field itself, Owners also something that is in it.
	Holders []fields.Identity `json:"holders"`
	Owners  []fields.Identity `json:"owners"`
	// Missing is true for what somebody holds and the object does not have.
	Missing bool `json:"missing,omitempty"`
	// Value of a field with nothing below that is held for itself.
	Value any `json:"value,omitempty"`
}

// ViewOf returns the view of trees.
func ViewOf(all []*Tree) OwnersView {
	out := OwnersView{Objects: make([]OwnedView, len(all))}

	for i, c := range all {
		v := OwnedView{Object: c.Ref, Managers: make([]ManagerView, len(c.Managers)), Fields: make([]FieldView, len(c.Fields))}

		for at, e := range c.Managers {
			v.Managers[at] = ManagerView{
				Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource,
				APIVersion: e.APIVersion, Time: e.Time, Fields: FieldCount(e),
			}
		}

		for at, n := range c.Fields {
			value, _ := c.Value(n)
			v.Fields[at] = FieldView{
				Path: fields.FormatPath(n.Path()), Kind: n.Kind, State: n.State, Missing: !n.Live, Value: value,
				Holders: c.Object.Tree.Identities(n.Holders), Owners: c.Object.Tree.Identities(n.Owners),
			}
		}

		out.Objects[i] = v
	}

	return out
}

// FieldCount returns how many fields an entry holds.
func FieldCount(e fields.Entry) int {
	if e.Fields == nil {
		return 0
	}

	return e.Fields.Size()
}

// Refs are the objects of the view.
func (v OwnersView) Refs() []identity.Ref {
	all := make([]identity.Ref, len(v.Objects))
	for i, o := range v.Objects {
		all[i] = o.Object
	}

	return all
}
