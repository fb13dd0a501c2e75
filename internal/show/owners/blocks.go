package owners

import (
	"cmp"
	"slices"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
)

// A Block is one manager that stands in the way of another, anywhere in the
// cluster.
type Block struct {
	Manager string          `json:"manager"`
	By      fields.Identity `json:"by"`
	// Workloads in which it does.
	Workloads int `json:"workloads"`
	// Partial containers would go in part, which the server refuses if anything of
	// that is required. Kept ones would stay, and nobody would say so.
	Partial int `json:"partial"`
	Kept    int `json:"kept"`
}

// BlocksOf sums up who blocks whom. Who blocks most comes first.
func BlocksOf(all []show.Finding) []Block {
	type pair struct {
		manager string
		by      fields.Identity
	}

	sums, objects := map[pair]*Block{}, map[pair]map[identity.Identity]bool{}

	for _, f := range all {
		if f.Blocked == nil {
			continue
		}

		for _, by := range f.Blocked.By {
			key := pair{f.Blocked.Manager, by}
			if sums[key] == nil {
				sums[key], objects[key] = &Block{Manager: key.manager, By: by}, map[identity.Identity]bool{}
			}

			if f.Blocked.Fate == fields.Partial {
				sums[key].Partial++
			} else {
				sums[key].Kept++
			}

			objects[key][f.Object.Identity()] = true
			sums[key].Workloads = len(objects[key])
		}
	}

	out := make([]Block, 0, len(sums))
	for _, b := range sums {
		out = append(out, *b)
	}

	slices.SortFunc(out, func(a, b Block) int {
		return cmp.Or(cmp.Compare(b.Workloads, a.Workloads), cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.By.String(), b.By.String()))
	})

	return out
}
