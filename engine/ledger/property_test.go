package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/engine/ledger"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func pfx(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// A pair is a ledger and its twin, and what has happened to them.
type pair struct {
	pool    *ledger.Pool
	twin    *twin
	now     time.Time
	log     []string
	reached map[string]int
}

func newPair(reached map[string]int) *pair {
	return &pair{pool: ledger.New(), twin: &twin{}, now: start, reached: reached}
}

// A chooser returns a number below n.
type chooser func(n int) int

func one[T any](choose chooser, of ...T) T { return of[choose(len(of))] }

// randomBlock is one of a few Subnets and child pools in a small range.
func randomBlock(choose chooser) ledger.Block {
	i := choose(10)
	b := ledger.Block{ID: fmt.Sprintf("s%d", i), Name: "one name for all", Owner: one(choose, "", "a", "b"), Claim: one(choose, "", "", "1", "2", "3")}
	if i >= 7 {
		b = ledger.Block{ID: ledger.ChildID(strconv.Itoa(i)), Delegated: true}
	} else if choose(4) == 0 {
		b.Delegated, b.Backs = true, one(choose, "", "pool/7", "pool/8", "pool/9")
	}
	b.Prefix = randomPrefix(choose)

	return b
}

func randomPrefix(choose chooser) netip.Prefix {
	address := netip.AddrFrom4([4]byte{10, 0, byte(choose(2)), byte(choose(4) * 64)})

	return netip.PrefixFrom(address, 24+choose(4)).Masked()
}

func randomRequest(choose chooser) ledger.Request {
	r := ledger.Request{Claim: one(choose, "1", "2", "3", "4", "5"), Owner: one(choose, "", "a", "b", "c", "d"), Length: 24 + choose(5), Strategy: one(choose, cidr.FirstFit, cidr.BestFit)}
	if choose(3) == 0 {
		r.Exact = randomPrefix(choose)
	}

	return r
}

// step does one random thing to both. The text is what they disagree about.
func (p *pair) step(choose chooser) string {
	p.now = p.now.Add(time.Second)
	switch what := choose(16); what {
	case 0:
		size := one(choose, netip.Prefix{}, pfx("10.0.0.0/24"), pfx("10.0.0.0/25"), pfx("10.0.0.0/23"), pfx("fd00::/64"))
		p.notef("range %s", size)
		p.pool.SetRange(size)
		p.twin.setRange(size)
	case 1:
		p.twin.open = choose(4) > 0
		p.notef("open %t", p.twin.open)
		p.pool.SetOpen(p.twin.open)
	case 2, 3, 4:
		b := randomBlock(choose)
		p.notef("drop %s", b.ID)

		return p.agree("Drop", p.pool.Drop(b.ID), p.twin.drop(b.ID))
	case 5, 6, 7:
		return p.reserve(randomRequest(choose))
	case 8:
		claim, b := randomRequest(choose).Claim, randomBlock(choose)
		if p.twin.createdAs(b.ID) != nil || b.Delegated {
			return "" // the API server gives each block an ID of its own
		}
		p.notef("created %s as %s", claim, b.ID)
		p.pool.Created(claim, ledger.Block{ID: b.ID, Name: b.ID})
		p.twin.created(claim, b.ID)
	case 9:
		claim := randomRequest(choose).Claim
		p.notef("cancel %s", claim)
		p.pool.Cancel(claim)
		p.twin.cancel(claim)
	case 10:
		blocks := p.recounted(choose)
		p.notef("replace %v", blocks)

		return p.agree("Replace", p.pool.Replace(blocks), p.twin.replace(blocks))
	default:
		b := randomBlock(choose)
		p.notef("put %+v", b)

		return p.agree("Put", p.pool.Put(b), p.twin.put(b))
	}

	return ""
}

// recounted is what a recount finds: what is known, or something else.
func (p *pair) recounted(choose chooser) []ledger.Block {
	var blocks []ledger.Block
	if choose(2) == 0 {
		for range choose(8) {
			blocks = append(blocks, randomBlock(choose))
		}

		return blocks
	}
	for _, i := range p.twin.items {
		if !i.reserved {
			blocks = append(blocks, i.Block)
		}
	}

	return blocks
}

func (p *pair) notef(format string, args ...any) { p.log = append(p.log, fmt.Sprintf(format, args...)) }

func (p *pair) agree(what string, got, want bool) string {
	p.reached[fmt.Sprint(what, want)]++
	if got == want {
		return ""
	}

	return fmt.Sprintf("%s returns %t", what, got)
}

func (p *pair) reserve(r ledger.Request) string {
	p.notef("reserve %+v", r)
	got, err := p.pool.Reserve(r, p.now)
	want, admitted, wantErr := p.twin.reserve(r, p.now)
	if has, ok := errors.AsType[*ledger.OwnerHasBlockError](err); ok || !admitted {
		p.reached["OwnerHasBlock"]++
		if !ok || admitted || has.Block.Owner != r.Owner || has.Block.Claim == r.Claim || has.Block.Claim == "" {
			return fmt.Sprintf("Reserve returns %v, admitted: %t", err, admitted)
		}

		return ""
	}
	p.reached[fmt.Sprintf("Reserve %T", wantErr)]++
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && got != want {
		return fmt.Sprintf("Reserve returns %s, %v; want %s, %v", got, err, want, wantErr)
	}

	return ""
}

// differ compares all that can be asked. The text is what differs.
func (p *pair) differ() string {
	if err := p.pool.Check(); err != nil {
		return err.Error()
	}
	all, own := p.twin.engines()
	want := ledger.Figures{All: all, Own: own}
	got := p.pool.Figures(100)
	if (all == nil) != (got.All == nil) {
		return "one has a range"
	}
	if all != nil {
		want.Delegated = all.Len() - own.Len()
		p.list(&want, own)
		for what, pools := range map[string][2]*cidr.Pool{"all": {all, got.All}, "own": {own, got.Own}} {
			if want, got := slices.Collect(pools[0].Taken()), slices.Collect(pools[1].Taken()); !slices.Equal(want, got) {
				return fmt.Sprintf("%s are %v, want %v", what, got, want)
			}
		}
	}
	if want.Delegated != got.Delegated || !slices.Equal(want.First, got.First) || !slices.Equal(want.Waiting, got.Waiting) {
		return fmt.Sprintf("figures are %+v, want %+v", got, want)
	}

	return p.differClaims()
}

// list fills in the blocks of figures.
func (p *pair) list(f *ledger.Figures, own *cidr.Pool) {
	for prefix := range own.Taken() {
		f.First = append(f.First, p.twin.find(func(i *item) bool { return i.held && i.Prefix == prefix }).Block)
	}
	for _, i := range p.twin.items {
		if !i.held && !i.backed && !i.reserved {
			f.Waiting = append(f.Waiting, i.Block)
			p.reached["Waiting"]++
		}
		if i.backed {
			p.reached["Backed"]++
		}
	}
	slices.SortFunc(f.Waiting, func(a, b ledger.Block) int {
		if by := a.Prefix.Compare(b.Prefix); by != 0 {
			return by
		}

		return strings.Compare(a.ID, b.ID)
	})
}

func (p *pair) differClaims() string {
	for _, claim := range []string{"", "1", "2", "3", "4", "5"} {
		want := claim != "" && p.twin.find(func(i *item) bool { return i.Claim == claim }) != nil
		if got := p.pool.Serves(claim); got != want {
			return fmt.Sprintf("Serves(%s) is %t", claim, got)
		}
	}
	var want []ledger.Reservation
	for _, i := range p.twin.items {
		if i.reserved && i.since.Before(p.now) {
			want = append(want, ledger.Reservation{Claim: i.Claim, Prefix: i.Prefix, ID: i.ID, Name: i.Name, Since: i.since})
		}
	}
	slices.SortFunc(want, func(a, b ledger.Reservation) int { return a.Since.Compare(b.Since) })
	if got := p.pool.Overdue(p.now); !slices.Equal(want, got) {
		return fmt.Sprintf("overdue are %v, want %v", got, want)
	}
	if got, want := p.pool.Empty(), len(p.twin.items) == 0 && !p.twin.size.IsValid(); got != want {
		return fmt.Sprintf("Empty is %t", got)
	}

	return ""
}

// run does random things, and fails at the first difference.
func (p *pair) run(t *testing.T, steps int, choose chooser) {
	t.Helper()
	for range steps {
		diff := p.step(choose)
		if diff == "" {
			diff = p.differ()
		}
		if diff != "" {
			t.Fatalf("%s\nafter %v", diff, p.log)
		}
	}
}

// TestTwin does random things to a ledger and to its twin, and compares everything
// after each.
func TestTwin(t *testing.T) {
	reached := map[string]int{}
	for seed := range uint64(400) {
		newPair(reached).run(t, 120, rand.New(rand.NewPCG(seed, 1)).IntN)
	}
	for _, what := range []string{
		"Puttrue", "Putfalse", "Droptrue", "Dropfalse", "Replacetrue", "Replacefalse", "OwnerHasBlock", "Waiting", "Backed",
		"Reserve <nil>", "Reserve *errors.errorString", "Reserve *cidr.Overlap", "Reserve *cidr.Exhausted", "Reserve *cidr.Misfit",
	} {
		if reached[what] < 50 {
			t.Errorf("%s was reached %d times: %v", what, reached[what], reached)
		}
	}
}
