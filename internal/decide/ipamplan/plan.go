package ipamplan

import (
	"errors"
	"fmt"
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
)

// A Plan is what claims would get of a pool. It is tried on the ledger of the pool.
type Plan struct {
	Stock    *Pool
	Strategy v1alpha1.Strategy
	// Length of the blocks that figures are about.
	Length int

	// Waiting are the claims that are ahead; blocks are what is asked for.
	Waiting, Blocks []Planned
	// Problems are what does not fit, and what would help.
	Problems []string
}

// NewPlan begins a plan. An empty strategy is the pool's own.
func NewPlan(s *Pool, strategy v1alpha1.Strategy) (*Plan, error) {
	if s.DeletionTimestamp != nil {
		return nil, fmt.Errorf("pool %s hands out nothing: it is being deleted", s.Name)
	}

	if strategy == "" {
		strategy = s.Strategy()
	}

	return &Plan{Stock: s, Strategy: strategy}, nil
}

// Before and after are what is taken without the plan, and with what is planned
// so far.
func (p *Plan) Before() *cidr.Pool { return p.Stock.All }

// After is what is taken with what is planned so far.
func (p *Plan) After() *cidr.Pool {
	return p.Stock.ledger.Figures(0).All
}

// serve takes the block that a claim asks for, as the allocator would.
func (p *Plan) serve(c *v1alpha1.SubnetClaim) (Planned, error) {
	wish, refusal := ipamrules.ReadClaim(c, p.Stock.SubnetPool, p.Before().Prefix())
	if refusal != nil {
		return Planned{}, &refused{refusal.Message}
	}

	prefix, err := p.Stock.ledger.Reserve(p.requestOf(wish, c), time.Time{})
	if err != nil {
		return Planned{}, err
	}

	return Planned{CIDR: prefix.String(), Subnet: ipamrules.SubnetName(p.Stock.Name, prefix)}, nil
}

// requestOf returns what a claim asks the ledger for. A block that is only planned
// has no claim, and is reserved under its number.
func (p *Plan) requestOf(w ipamrules.Request, c *v1alpha1.SubnetClaim) ledger.Request {
	r := ledger.Request{Claim: string(c.UID), Owner: c.Spec.ClusterID, Length: w.Length, Exact: w.Exact, Strategy: ipamrules.AllocationStrategy(p.Strategy)}

	if r.Claim == "" {
		r.Claim = fmt.Sprintf("plan/%d", len(p.Blocks))
	}

	return r
}

// refused is a claim that can never be served as it is written.
type refused struct{ message string }

func (r *refused) Error() string { return r.message }

// ServeWaiting serves the claims that are ahead. One that cannot be served goes
// on waiting, and lets others pass.
func (p *Plan) ServeWaiting() {
	for _, c := range p.Stock.Queue {
		b, err := p.serve(c)
		if err != nil {
			b.Why = err.Error()
		}

		b.Claim = c.Name
		p.Waiting = append(p.Waiting, b)
	}
}

// Served is how many of the claims that wait get a block.
func (p *Plan) Served() int {
	n := 0

	for _, b := range p.Waiting {
		if b.CIDR != "" {
			n++
		}
	}

	return n
}

// Request asks for a very block. The error is what the pool would never hand
// out.
func (p *Plan) Request(block string) error {
	b, err := p.serve(&v1alpha1.SubnetClaim{Spec: v1alpha1.SubnetClaimSpec{RequestedCIDR: block}})
	if never, ok := errors.AsType[*refused](err); ok {
		return never
	}

	if err != nil {
		p.Problems = append(p.Problems, p.explain(block, err))

		return nil
	}

	p.Blocks = append(p.Blocks, b)

	return nil
}

// explain says who has a block that is asked for.
func (p *Plan) explain(block string, err error) string {
	overlap, ok := errors.AsType[*cidr.Overlap](err)
	if !ok {
		return err.Error()
	}

	who := ", which is planned before it"
	if h, taken := p.Stock.Holders[overlap.With]; taken {
		who = " of " + h.String()
	}

	return fmt.Sprintf("cannot hand out %s of pool %s: it overlaps %s%s; choose another block, or leave the choice to the pool with --size %d",
		block, p.Stock.Name, overlap.With, who, overlap.Block.Bits())
}

// Take asks for blocks of the length. The error is what the pool would never
// hand out.
func (p *Plan) Take(wanted int) error {
	size := int32(p.Length) //nolint:gosec // it comes from an int32, or is at most 128
	start := p.After()

	for got := range wanted {
		b, err := p.serve(&v1alpha1.SubnetClaim{Spec: v1alpha1.SubnetClaimSpec{BlockSize: &size}})
		if never, ok := errors.AsType[*refused](err); ok {
			return never
		}

		if err != nil {
			p.Problems = append(p.Problems, p.shortage(start, got, wanted))

			break
		}

		p.Blocks = append(p.Blocks, b)
	}

	return nil
}

// shortage says how many blocks fit into what was there at the start, and what
// would help. How many fit does not depend on the strategy.
func (p *Plan) shortage(start *cidr.Pool, got, wanted int) string {
	text := fmt.Sprintf("cannot hand out %s of /%d from pool %s: ", count(wanted, "block"), p.Length, p.Stock.Name)

	switch largest, ok := p.After().Largest(); {
	case !ok && got == 0:
		text += "every address is taken"
	case !ok:
		text += fmt.Sprintf("only %d would fit, and then every address is taken", got)
	case got == 0:
		text += fmt.Sprintf("the largest free block is a /%d", largest)
	default:
		text += fmt.Sprintf("only %d would fit, and the largest block left is then a /%d", got, largest)
	}

	if length, ok := p.smaller(start, wanted); ok {
		text += fmt.Sprintf("; %s of /%d would fit (--size %d)", count(wanted, "block"), length, length)
	}

	if p.Served() > 0 && enough(p.Before(), p.Length, wanted) {
		text += "; all would fit without the claims that wait (--after-waiting=false)"
	}

	return text + "; release blocks, or use another pool"
}

// smaller is the largest size of which enough blocks would fit, and which the
// pool hands out.
func (p *Plan) smaller(start *cidr.Pool, wanted int) (int, bool) {
	most := p.Before().Prefix().Addr().BitLen()
	if limit := p.Stock.Spec.MaxBlockSize; limit != nil {
		most = min(most, int(*limit))
	}

	for length := p.Length + 1; length <= most; length++ {
		if enough(start, length, wanted) {
			return length, true
		}
	}

	return 0, false
}

// count writes a number with its noun: 1 block, 2 blocks.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

func enough(c *cidr.Pool, length, wanted int) bool {
	return c.FreeCount(length).Uint64() >= uint64(max(0, wanted))
}

// A Planned is a block that would be handed out.
type Planned struct {
	// CIDR is empty for a claim that goes on waiting.
	CIDR   string `json:"cidr,omitempty"`
	Subnet string `json:"subnet,omitempty"`
	// Claim that waits for it, if one does.
	Claim string `json:"claim,omitempty"`
	// Why a claim goes on waiting.
	Why string `json:"why,omitempty"`
}
