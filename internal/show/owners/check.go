package owners

import (
	"strings"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
)

// An OwnershipReport is the result of arbor fields check.
type OwnershipReport struct {
	Checks  []OwnershipCheck `json:"checks"`
	Summary OwnershipSummary `json:"summary"`
}

// An OwnershipCheck says what a manager has of a part of one object.
type OwnershipCheck struct {
	Object  identity.Ref `json:"object"`
	Scope   fields.Scope `json:"scope"`
	Manager string       `json:"manager"`
	// ScopeExists says whether the object has that part.
	ScopeExists bool `json:"scopeExists"`
	FullyOwned  bool `json:"fullyOwned"`
	// OtherManagers have something of it too.
	OtherManagers []string `json:"otherManagers"`
	// OwnUpdates says that the manager itself wrote some of it without apply.
	OwnUpdates bool `json:"ownUpdates"`
	// Subresources are entries that do not count.
	Subresources []fields.Identity `json:"subresources,omitempty"`
	// Lifted are the parts that stand for the scope, which is inside of them.
	Lifted []string `json:"lifted,omitempty"`
}

// OwnershipSummary counts objects.
type OwnershipSummary struct {
	Checked    int `json:"checked"`
	FullyOwned int `json:"fullyOwned"`
}

// NewCheck checks what a manager has of a part of an object.
func NewCheck(thing *Object, within fields.Scope, manager string) OwnershipCheck {
	found := thing.Tree.CheckOwnership(within, manager)
	c := OwnershipCheck{
		Object: thing.Ref, Scope: within, Manager: manager,
		ScopeExists: found.ScopeExists, FullyOwned: found.FullyOwned, OwnUpdates: found.OwnUpdates,
		OtherManagers: append([]string{}, found.OtherManagers...), Subresources: found.Subresources,
	}

	for _, p := range found.Lifted {
		c.Lifted = append(c.Lifted, fields.FormatPath(p))
	}

	return c
}

// Add adds the check of one object.
func (r *OwnershipReport) Add(c OwnershipCheck) {
	r.Checks = append(r.Checks, c)
	r.Summary.Checked++

	if c.FullyOwned {
		r.Summary.FullyOwned++
	}
}

// Verdict is the check in a few words.
func (c OwnershipCheck) Verdict() string {
	switch {
	case !c.ScopeExists:
		return "not there"
	case c.FullyOwned:
		return "yes"
	case c.OwnUpdates:
		return "no, not all of it is applied"
	case len(c.OtherManagers) == 0 && len(c.Subresources) > 0:
		return "no, " + subresourceNames(c.Subresources) + " has it"
	case len(c.OtherManagers) == 0:
		return "no, nobody owns it"
	default:
		return "no"
	}
}

// subresourceNames are as arbor fields show has them.
func subresourceNames(all []fields.Identity) string {
	texts := make([]string, len(all))
	for i, id := range all {
		texts[i] = id.Manager + "/" + id.Subresource
	}

	return strings.Join(texts, " and ")
}
