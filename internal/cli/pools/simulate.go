package pools

import (
	"errors"
	"fmt"
	"time"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/claim"
)

// A plan is what claims would get of a pool. It is tried on the ledger of the pool.
type plan struct {
	stock    *stock
	strategy v1alpha1.Strategy
	// length of the blocks that figures are about.
	length int

	// waiting are the claims that are ahead; blocks are what is asked for.
	waiting, blocks []PlannedView
	// problems are what does not fit, and what would help.
	problems []string
}

// newPlan begins a plan. An empty strategy is the pool's own.
func newPlan(s *stock, strategy v1alpha1.Strategy) (*plan, error) {
	if s.DeletionTimestamp != nil {
		return nil, fmt.Errorf("pool %s hands out nothing: it is being deleted", s.Name)
	}

	if strategy == "" {
		strategy = s.strategy()
	}

	return &plan{stock: s, strategy: strategy}, nil
}

// before and after are what is taken without the plan, and with what is planned
// so far.
func (p *plan) before() *cidr.Pool { return p.stock.All }

func (p *plan) after() *cidr.Pool {
	return p.stock.ledger.Figures(0).All
}

// serve takes the block that a claim asks for, as the allocator would.
func (p *plan) serve(c *v1alpha1.SubnetClaim) (PlannedView, error) {
	wish, refusal := claim.Read(c, p.stock.SubnetPool, p.before().Prefix())
	if refusal != nil {
		return PlannedView{}, &refused{refusal.Message}
	}

	prefix, err := p.stock.ledger.Reserve(p.requestOf(wish, c), time.Time{})
	if err != nil {
		return PlannedView{}, err
	}

	return PlannedView{CIDR: prefix.String(), Subnet: claim.SubnetName(p.stock.Name, prefix)}, nil
}

// requestOf returns what a claim asks the ledger for. A block that is only planned
// has no claim, and is reserved under its number.
func (p *plan) requestOf(w claim.Wish, c *v1alpha1.SubnetClaim) ledger.Request {
	r := ledger.Request{Claim: string(c.UID), Owner: c.Spec.ClusterID, Length: w.Length, Exact: w.Exact, Strategy: claim.Strategy(p.strategy)}

	if r.Claim == "" {
		r.Claim = fmt.Sprintf("plan/%d", len(p.blocks))
	}

	return r
}

// refused is a claim that can never be served as it is written.
type refused struct{ message string }

func (r *refused) Error() string { return r.message }

// serveWaiting serves the claims that are ahead. One that cannot be served goes
// on waiting, and lets others pass.
func (p *plan) serveWaiting() {
	for _, c := range p.stock.queue {
		b, err := p.serve(c)
		if err != nil {
			b.Why = err.Error()
		}

		b.Claim = c.Name
		p.waiting = append(p.waiting, b)
	}
}

// served is how many of the claims that wait get a block.
func (p *plan) served() int {
	n := 0

	for _, b := range p.waiting {
		if b.CIDR != "" {
			n++
		}
	}

	return n
}

// waitingNote says what the claims that wait mean for the plan.
func (p *plan) waitingNote(included bool) string {
	n := len(p.stock.queue)

	switch served := p.served(); {
	case n == 0:
		return ""
	case !included:
		return waitingText(n) + " and would be served first; this is without them"
	case served == 0:
		return waitingText(n) + " and cannot be served"
	case served == n:
		return render.Verb(n, "claim", "waits and is served first", "wait and are served first")
	case served == 1:
		return waitingText(n) + "; 1 of them is served first"
	default:
		return fmt.Sprintf("%s; %d of them are served first", waitingText(n), served)
	}
}

// request asks for a very block. The error is what the pool would never hand
// out.
func (p *plan) request(block string) error {
	b, err := p.serve(&v1alpha1.SubnetClaim{Spec: v1alpha1.SubnetClaimSpec{RequestedCIDR: block}})
	if never, ok := errors.AsType[*refused](err); ok {
		return never
	}

	if err != nil {
		p.problems = append(p.problems, p.explain(block, err))

		return nil
	}

	p.blocks = append(p.blocks, b)

	return nil
}

// explain says who has a block that is asked for.
func (p *plan) explain(block string, err error) string {
	overlap, ok := errors.AsType[*cidr.Overlap](err)
	if !ok {
		return err.Error()
	}

	who := ", which is planned before it"
	if h, taken := p.stock.holders[overlap.With]; taken {
		who = " of " + h.String()
	}

	return fmt.Sprintf("cannot hand out %s of pool %s: it overlaps %s%s; choose another block, or leave the choice to the pool with --size %d",
		block, p.stock.Name, overlap.With, who, overlap.Block.Bits())
}

// take asks for blocks of the length. The error is what the pool would never
// hand out.
func (p *plan) take(wanted int) error {
	size := int32(p.length) //nolint:gosec // it comes from an int32, or is at most 128
	start := p.after()

	for got := range wanted {
		b, err := p.serve(&v1alpha1.SubnetClaim{Spec: v1alpha1.SubnetClaimSpec{BlockSize: &size}})
		if never, ok := errors.AsType[*refused](err); ok {
			return never
		}

		if err != nil {
			p.problems = append(p.problems, p.shortage(start, got, wanted))

			break
		}

		p.blocks = append(p.blocks, b)
	}

	return nil
}

// shortage says how many blocks fit into what was there at the start, and what
// would help. How many fit does not depend on the strategy.
func (p *plan) shortage(start *cidr.Pool, got, wanted int) string {
	text := fmt.Sprintf("cannot hand out %s of /%d from pool %s: ", render.Count(wanted, "block"), p.length, p.stock.Name)

	switch largest, ok := p.after().Largest(); {
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
		text += fmt.Sprintf("; %s of /%d would fit (--size %d)", render.Count(wanted, "block"), length, length)
	}

	if p.served() > 0 && enough(p.before(), p.length, wanted) {
		text += "; all would fit without the claims that wait (--after-waiting=false)"
	}

	return text + "; release blocks, or use another pool"
}

// smaller is the largest size of which enough blocks would fit, and which the
// pool hands out.
func (p *plan) smaller(start *cidr.Pool, wanted int) (int, bool) {
	most := p.before().Prefix().Addr().BitLen()
	if limit := p.stock.Spec.MaxBlockSize; limit != nil {
		most = min(most, int(*limit))
	}

	for length := p.length + 1; length <= most; length++ {
		if enough(start, length, wanted) {
			return length, true
		}
	}

	return 0, false
}

func enough(c *cidr.Pool, length, wanted int) bool {
	return c.FreeCount(length).Uint64() >= uint64(max(0, wanted))
}

// A PlannedView is a block that would be handed out.
type PlannedView struct {
	// CIDR is empty for a claim that goes on waiting.
	CIDR   string `json:"cidr,omitempty"`
	Subnet string `json:"subnet,omitempty"`
	// Claim that waits for it, if one does.
	Claim string `json:"claim,omitempty"`
	// Why a claim goes on waiting.
	Why string `json:"why,omitempty"`
}

// A PlanView is what arbor pools plan prints for programs.
type PlanView struct {
	Namespace string            `json:"namespace"`
	Pool      string            `json:"pool"`
	CIDR      string            `json:"cidr"`
	Strategy  v1alpha1.Strategy `json:"strategy"`
	// Size is the length that FreeOfSize counts.
	Size int `json:"size"`
	// Waiting are the claims that are served before, in their order.
	Waiting []PlannedView `json:"waiting"`
	// Blocks are what would be handed out.
	Blocks []PlannedView `json:"blocks"`
	// Fits is true if that is everything that was asked for.
	Fits bool `json:"fits"`
	// Problems say what does not fit, and what would help.
	Problems []string      `json:"problems"`
	Before   PlanSpaceView `json:"before"`
	After    PlanSpaceView `json:"after"`
}

// A PlanSpaceView is a pool before or after a plan.
type PlanSpaceView struct {
	SpaceView

	// FreeOfSize is how many blocks of the size could be handed out, or the
	// largest int64 if that is less.
	FreeOfSize int64 `json:"freeOfSize"`
}

func planViewOf(p *plan) PlanView {
	return PlanView{
		Namespace: p.stock.Namespace, Pool: p.stock.Name, CIDR: p.before().Prefix().String(), Strategy: p.strategy, Size: p.length,
		Waiting: append([]PlannedView{}, p.waiting...), Blocks: append([]PlannedView{}, p.blocks...),
		Fits: len(p.problems) == 0, Problems: append([]string{}, p.problems...),
		Before: planSpaceOf(p.before(), p.length), After: planSpaceOf(p.after(), p.length),
	}
}

func planSpaceOf(c *cidr.Pool, length int) PlanSpaceView {
	return PlanSpaceView{SpaceView: spaceViewOf(c), FreeOfSize: c.FreeCount(length).Int64()}
}
