package ledger_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
)

// open returns an open pool with blocks.
func open(t *testing.T, size string, blocks ...ledger.Block) *ledger.Pool {
	t.Helper()
	p := ledger.New()
	p.SetRange(pfx(size))
	p.SetOpen(true)
	for _, b := range blocks {
		p.Put(b)
		check(t, p)
	}

	return p
}

func check(t *testing.T, p *ledger.Pool) {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
}

// counts are the figures of a pool.
type counts struct {
	All, Own  []string
	Delegated int
	Waiting   []string
}

func countsOf(p *ledger.Pool) counts {
	var c counts
	f := p.Figures(100)
	if f.All == nil {
		return c
	}
	for b := range f.All.Taken() {
		c.All = append(c.All, b.String())
	}
	for b := range f.Own.Taken() {
		c.Own = append(c.Own, b.String())
	}
	c.Delegated = f.Delegated
	for _, b := range f.Waiting {
		c.Waiting = append(c.Waiting, b.ID)
	}

	return c
}

func TestFigures(t *testing.T) {
	const quarter, half = "10.0.0.0/26", "10.0.0.0/25"
	subnet := func(id, prefix string) ledger.Block { return ledger.Block{ID: id, Prefix: pfx(prefix)} }
	child := ledger.Block{ID: ledger.ChildID("c"), Prefix: pfx(quarter), Delegated: true}
	backing := ledger.Block{ID: "b", Prefix: pfx(half), Delegated: true, Backs: child.ID}
	unbound := ledger.Block{ID: "b", Prefix: pfx(quarter), Delegated: true}

	cases := map[string]struct {
		reason string
		do     func(p *ledger.Pool)
		want   counts
	}{
		"Own":          {"A Subnet is counted.", func(p *ledger.Pool) { p.Put(subnet("a", quarter)) }, counts{All: []string{quarter}, Own: []string{quarter}}},
		"Child":        {"A child pool is delegated.", func(p *ledger.Pool) { p.Put(child) }, counts{All: []string{quarter}, Delegated: 1}},
		"Backed":       {"A child pool counts once, as the Subnet that backs it.", func(p *ledger.Pool) { p.Put(backing); p.Put(child) }, counts{All: []string{half}, Delegated: 1}},
		"BackedLater":  {"The order does not matter.", func(p *ledger.Pool) { p.Put(child); p.Put(backing) }, counts{All: []string{half}, Delegated: 1}},
		"Unbound":      {"A Subnet that does not know its child counts once with a child of its prefix.", func(p *ledger.Pool) { p.Put(unbound); p.Put(child) }, counts{All: []string{quarter}, Delegated: 1}},
		"Stored":       {"So does a Subnet from before there were backing ones.", func(p *ledger.Pool) { p.Put(subnet("b", quarter)); p.Put(child) }, counts{All: []string{quarter}, Delegated: 1}},
		"ChildGone":    {"Then it is an own one.", func(p *ledger.Pool) { p.Put(subnet("b", quarter)); p.Put(child); p.Drop(child.ID) }, counts{All: []string{quarter}, Own: []string{quarter}}},
		"BackingGone":  {"A child pool counts without its Subnet.", func(p *ledger.Pool) { p.Put(child); p.Put(backing); p.Drop("b") }, counts{All: []string{quarter}, Delegated: 1}},
		"BackingFirst": {"The Subnet goes before one that waits for the child.", func(p *ledger.Pool) { p.Put(child); p.Put(subnet("w", "10.0.0.0/27")); p.Put(backing) }, counts{All: []string{half}, Delegated: 1, Waiting: []string{"w"}}},
		"Waits":        {"Of two that overlap the first counts.", func(p *ledger.Pool) { p.Put(subnet("a", half)); p.Put(subnet("b", quarter)) }, counts{All: []string{half}, Own: []string{half}, Waiting: []string{"b"}}},
		"Fits":         {"The second counts when the first is gone.", func(p *ledger.Pool) { p.Put(subnet("a", half)); p.Put(subnet("b", quarter)); p.Drop("a") }, counts{All: []string{quarter}, Own: []string{quarter}}},
		"Oldest": {"The oldest of those that wait is first.", func(p *ledger.Pool) {
			p.Put(subnet("a", half))
			p.Put(subnet("z", half))
			p.Put(subnet("b", quarter))
			p.Drop("a")
		}, counts{All: []string{half}, Own: []string{half}, Waiting: []string{"b"}}},
		"Outside":  {"What is outside is not counted.", func(p *ledger.Pool) { p.Put(subnet("a", "10.0.1.0/24")) }, counts{Waiting: []string{"a"}}},
		"Grown":    {"It is, when the range grows.", func(p *ledger.Pool) { p.Put(subnet("a", "10.0.1.0/24")); p.SetRange(pfx("10.0.0.0/23")) }, counts{All: []string{"10.0.1.0/24"}, Own: []string{"10.0.1.0/24"}}},
		"Unmasked": {"A prefix that cannot be a range is none.", func(p *ledger.Pool) { p.Put(subnet("a", quarter)); p.SetRange(pfx("10.0.0.5/24")) }, counts{}},
		"SameName": {"Two blocks may have one name.", func(p *ledger.Pool) {
			p.Put(ledger.Block{ID: "a", Name: "n", Prefix: pfx(quarter)})
			p.Put(ledger.Block{ID: "b", Name: "n", Prefix: pfx("10.0.0.64/26")})
			p.Drop("a")
		}, counts{All: []string{"10.0.0.64/26"}, Own: []string{"10.0.0.64/26"}}},
		"Changed": {"A block that changes keeps its place.", func(p *ledger.Pool) {
			p.Put(subnet("a", half))
			p.Put(subnet("b", quarter))
			p.Put(ledger.Block{ID: "a", Prefix: pfx(half), Claim: "x"})
		}, counts{All: []string{half}, Own: []string{half}, Waiting: []string{"b"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := open(t, "10.0.0.0/24")
			tc.do(p)
			check(t, p)
			if diff := cmp.Diff(tc.want, countsOf(p)); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A reservation belongs to a claim, and ends by what becomes of its block.
func TestReservation(t *testing.T) {
	mine := ledger.Block{ID: "s", Name: "n", Prefix: pfx("10.0.0.0/26"), Owner: "c", Claim: "u"}
	moved, foreign := mine, mine
	moved.Prefix = pfx("10.0.0.64/26")
	foreign.ID, foreign.Claim = "f", "other"
	sibling := moved
	sibling.ID = "t"

	cases := map[string]struct {
		reason   string
		do       func(p *ledger.Pool)
		reserved bool
		serves   bool
		taken    int
	}{
		"Reserved":      {"It takes addresses.", func(*ledger.Pool) {}, true, true, 1},
		"Seen":          {"The watch brings the block.", func(p *ledger.Pool) { p.Put(mine) }, false, true, 1},
		"CreatedFirst":  {"Usually the API server answers before that.", func(p *ledger.Pool) { p.Created("u", mine); p.Put(mine) }, false, true, 1},
		"CreatedLast":   {"Sometimes after that.", func(p *ledger.Pool) { p.Put(mine); p.Created("u", mine) }, false, true, 1},
		"GoneByThen":    {"By then the block can be gone again.", func(p *ledger.Pool) { p.Put(mine); p.Drop("s"); p.Created("u", mine) }, false, false, 0},
		"Gone":          {"A watch can miss all but the end.", func(p *ledger.Pool) { p.Created("u", mine); p.Drop("s") }, false, false, 0},
		"Canceled":      {"The block could not be created.", func(p *ledger.Pool) { p.Cancel("u") }, false, false, 0},
		"Foreign":       {"A block of another claim ends nothing.", func(p *ledger.Pool) { p.Put(foreign) }, true, true, 1},
		"ForeignStays":  {"It counts when the reservation is given up.", func(p *ledger.Pool) { p.Put(foreign); p.Cancel("u") }, false, false, 1},
		"AnotherBlock":  {"Another block of the claim is not this one.", func(p *ledger.Pool) { p.Put(sibling) }, true, true, 2},
		"OtherPrefix":   {"The ID tells which block it is.", func(p *ledger.Pool) { p.Created("u", mine); p.Put(moved) }, false, true, 1},
		"Recount":       {"A recount does not end it.", func(p *ledger.Pool) { p.Replace(nil) }, true, true, 1},
		"RecountFinds":  {"Unless it finds the block.", func(p *ledger.Pool) { p.Replace([]ledger.Block{mine}) }, false, true, 1},
		"PoolIsGone":    {"It stays without a range.", func(p *ledger.Pool) { p.SetRange(netip.Prefix{}) }, true, true, 0},
		"PoolComesBack": {"And counts when there is one again.", func(p *ledger.Pool) { p.SetRange(netip.Prefix{}); p.SetRange(pfx("10.0.0.0/24")) }, true, true, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := open(t, "10.0.0.0/24")
			if got, err := p.Reserve(ledger.Request{Claim: "u", Owner: "c", Length: 26}, start); err != nil || got != mine.Prefix {
				t.Fatal(got, err)
			}
			tc.do(p)
			check(t, p)
			overdue, serves, taken := p.Overdue(start.Add(time.Second)), p.Serves("u"), len(countsOf(p).All)
			if (len(overdue) == 1) != tc.reserved || serves != tc.serves || taken != tc.taken {
				t.Errorf("%s\noverdue %v, serves %t, taken %d", tc.reason, overdue, serves, taken)
			}
		})
	}
}

func TestReserveRefused(t *testing.T) {
	claimed := ledger.Block{ID: "s", Prefix: pfx("10.0.0.0/26"), Owner: "c", Claim: "u"}
	handmade := ledger.Block{ID: "h", Prefix: pfx("10.0.0.64/26"), Owner: "h"}
	child := ledger.Block{ID: ledger.ChildID("p"), Prefix: pfx("10.0.0.128/25"), Delegated: true}

	cases := map[string]struct {
		reason  string
		request ledger.Request
		closed  bool
		noRange bool
		want    error
	}{
		"NoRange":  {reason: "There is nothing to take.", request: ledger.Request{Claim: "x", Length: 26}, noRange: true, want: ledger.ErrNoRange},
		"Closed":   {reason: "A closed pool allocates nothing.", request: ledger.Request{Claim: "x", Length: 26}, closed: true, want: ledger.ErrClosed},
		"HasBlock": {reason: "A cluster has one claimed block of a pool.", request: ledger.Request{Claim: "x", Owner: "c", Length: 26}, want: &ledger.OwnerHasBlockError{Owner: "c", Block: claimed}},
		"Full":     {reason: "What is delegated is not free.", request: ledger.Request{Claim: "x", Owner: "h", Length: 26}, want: &cidr.Exhausted{Pool: pfx("10.0.0.0/24"), Bits: 26, Largest: -1}},
		"Taken":    {reason: "The block itself is taken.", request: ledger.Request{Claim: "x", Exact: pfx("10.0.0.64/27")}, want: &cidr.Overlap{Pool: pfx("10.0.0.0/24"), Block: pfx("10.0.0.64/27"), With: pfx("10.0.0.64/26")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := open(t, "10.0.0.0/24", claimed, handmade, child)
			p.SetOpen(!tc.closed)
			if tc.noRange {
				p.SetRange(netip.Prefix{})
			}
			_, err := p.Reserve(tc.request, start)
			check(t, p)
			if fmt.Sprintf("%T %v", err, err) != fmt.Sprintf("%T %v", tc.want, tc.want) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, err, tc.want)
			}
			if p.Serves(tc.request.Claim) {
				t.Errorf("%s\nsomething was reserved", tc.reason)
			}
		})
	}
}

// A child pool that comes back from a backup before its block does not keep the block
// from being taken for it, once.
func TestReserveForChild(t *testing.T) {
	child := ledger.Block{ID: ledger.ChildID("p"), Name: "lab", Prefix: pfx("10.0.0.128/25"), Delegated: true}
	p := open(t, "10.0.0.0/24", child)
	request := ledger.Request{Claim: "u", Owner: "c", Exact: child.Prefix}
	if got, err := p.Reserve(request, start); err == nil {
		t.Errorf("the block of a child pool is given to a claim that is not for it: %s", got)
	}
	request.Backs = "lab"
	if got, err := p.Reserve(request, start); err != nil || got != child.Prefix {
		t.Errorf("got %s, %v", got, err)
	}
	check(t, p)
	if got, err := p.Reserve(ledger.Request{Claim: "v", Owner: "d", Exact: child.Prefix, Backs: "lab"}, start); err == nil {
		t.Errorf("it is given away twice: %s", got)
	}
	p.Put(ledger.Block{ID: "s", Name: "block", Prefix: child.Prefix, Owner: "c", Claim: "u", Delegated: true, Backs: child.ID})
	check(t, p)
	if f := p.Figures(1); f.Delegated != 1 || f.Own.Len() != 0 || f.All.Len() != 1 {
		t.Errorf("the child and its block count as %d delegated and %d own ones", f.Delegated, f.Own.Len())
	}
}

// Hand-made blocks of a cluster do not keep its claim from getting one, and a claim
// that has lost its block gets another.
func TestOwner(t *testing.T) {
	p := open(t, "10.0.0.0/24", ledger.Block{ID: "h", Prefix: pfx("10.0.0.0/26"), Owner: "c"})
	if got, err := p.Reserve(ledger.Request{Claim: "u", Owner: "c", Length: 26}, start); err != nil || got != pfx("10.0.0.64/26") {
		t.Errorf("a hand-made block keeps a claim out: %v, %v", got, err)
	}
	p.Put(ledger.Block{ID: "s", Prefix: pfx("10.0.0.64/26"), Owner: "c", Claim: "u"})
	check(t, p)
	has := &ledger.OwnerHasBlockError{}
	if _, err := p.Reserve(ledger.Request{Claim: "v", Owner: "c", Length: 26}, start); !errors.As(err, &has) || has.Block.ID != "s" {
		t.Errorf("a second claim of the cluster got %v", err)
	}
	p.Drop("s")
	check(t, p)
	if _, err := p.Reserve(ledger.Request{Claim: "v", Owner: "c", Length: 26}, start); err != nil {
		t.Errorf("after the release a claim got %v", err)
	}
}

// Deleting all blocks of one cluster does not compare each block with every other one, neither of
// the cluster nor of those that wait.
func TestManyOfOneOwner(t *testing.T) {
	const few, many = 2_000, 32_000
	spent := func(n int) time.Duration {
		p := open(t, "10.0.0.0/8")
		for i := range n {
			address := netip.AddrFrom4([4]byte{10, byte(i >> 12), byte(i >> 4), byte(i << 4)})
			p.Put(ledger.Block{ID: fmt.Sprint("s", i), Prefix: netip.PrefixFrom(address, 28), Owner: "one", Claim: "one"})
			p.Put(ledger.Block{ID: fmt.Sprint("w", i), Prefix: netip.PrefixFrom(address, 30), Owner: "one", Claim: "one"})
		}
		begin := time.Now()
		for i := range n {
			p.Drop(fmt.Sprint("s", i))
			p.Drop(fmt.Sprint("w", i))
		}

		return time.Since(begin)
	}
	spent(few) // warm up
	// Other processes may slow down one of the two. One fair comparison is enough: to compare each
	// block with every other one takes 256 times as long.
	var small, large time.Duration
	for range 5 {
		if small, large = spent(few), spent(many); large <= 80*max(small, time.Millisecond) {
			return
		}
	}
	t.Errorf("%d took %s, and %d took %s", few, small, many, large)
}
