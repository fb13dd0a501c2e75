package model

import (
	"cmp"
	"slices"
	"sync"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/identity"
)

// maxReported is how many objects an ownership report names.
const maxReported = 20

// A OwnershipReport is what was found about the ownership of objects. It may be used by any
// number of goroutines: workers of an earlier view still write to it when there is a
// new one.
type OwnershipReport struct {
	mu  sync.Mutex
	all map[decide.Identity]enov1.OwnershipObject
}

// NewOwnershipReport returns an empty report.
func NewOwnershipReport() *OwnershipReport {
	return &OwnershipReport{all: map[decide.Identity]enov1.OwnershipObject{}}
}

// Note records a finding, and returns the one before and whether it is another. A
// finding without state removes one that was not resolved by a migration.
func (r *OwnershipReport) Note(id decide.Identity, o enov1.OwnershipObject) (had enov1.OwnershipObject, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	had, ok := r.all[id]
	switch {
	case o.State == "" && (!ok || had.State == enov1.OwnershipMigrated), had == o:
		return had, false
	case o.State == "":
		delete(r.all, id)
	default:
		r.all[id] = o
	}

	return had, true
}

// RestoreReport takes over what an earlier process reported.
func (v *Composition) RestoreReport(c *enov1.Composition) {
	v.OwnershipReport.mu.Lock()
	defer v.OwnershipReport.mu.Unlock()
	if c.Status.Ownership == nil || len(v.OwnershipReport.all) > 0 {
		return
	}
	for _, o := range c.Status.Ownership.Objects {
		id := identity.New(o.APIVersion, o.Kind, o.Namespace, o.Name)
		if _, ok := v.ByID[id]; ok {
			v.OwnershipReport.all[id] = o
		}
	}
}

// OwnershipStatus is the report of a view.
func (v *Composition) OwnershipStatus() *enov1.OwnershipReport {
	v.OwnershipReport.mu.Lock()
	defer v.OwnershipReport.mu.Unlock()
	r := &enov1.OwnershipReport{}
	for id, o := range v.OwnershipReport.all {
		if _, ok := v.ByID[id]; !ok {
			continue
		}
		switch o.State {
		case enov1.OwnershipSplit:
			r.Split++
		case enov1.OwnershipMigrated:
			r.Migrated++
		default:
			r.Failed++
		}
		r.Objects = append(r.Objects, o)
	}
	slices.SortFunc(r.Objects, func(a, b enov1.OwnershipObject) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	r.Objects = r.Objects[:min(len(r.Objects), maxReported)]

	return r
}
