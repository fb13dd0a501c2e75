package ledger

import (
	"cmp"
	"slices"

	"github.com/arbor-control/arbor/engine/cidr"
)

// Figures describe a pool at one moment.
type Figures struct {
	// All is everything that is taken or reserved, Own what of that is not
	// delegated. They are copies. Both are nil for a pool without a range.
	All, Own *cidr.Pool
	// Delegated is the number of blocks that are pools of their own.
	Delegated int
	// First are the first blocks that are not delegated, by address.
	First []Block
	// Waiting are the blocks that overlap other blocks or lie outside of the range, by address.
	Waiting []Block
}

// Figures describes the pool now, with at most limit first blocks.
func (p *Pool) Figures(limit int) Figures {
	if p.all == nil {
		return Figures{}
	}
	f := Figures{All: p.all.Clone(), Own: p.own.Clone(), Delegated: p.all.Len() - p.own.Len()}
	for e := range p.waiting {
		if p.blocks[e.ID] == e {
			f.Waiting = append(f.Waiting, e.Block)
		}
	}
	slices.SortFunc(f.Waiting, func(a, b Block) int { return cmp.Or(a.Prefix.Compare(b.Prefix), cmp.Compare(a.ID, b.ID)) })
	f.First = make([]Block, 0, min(limit, p.own.Len()))
	for prefix := range p.own.Taken() {
		if len(f.First) == limit {
			break
		}
		f.First = append(f.First, p.taken[prefix].own.Block)
	}

	return f
}
