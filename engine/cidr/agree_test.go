package cidr_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/arbor-control/arbor/engine/cidr"
)

var options = cmp.Options{
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmpopts.EquateApprox(0, 1e-12),
	cmpopts.EquateEmpty(),
}

// A pair is a pool and its twin, which go through the same.
type pair struct {
	pool *cidr.Pool
	twin *twin
}

func newPair(t testing.TB, prefix string) pair {
	t.Helper()

	return pair{pool: mustPool(t, prefix), twin: &twin{pool: netip.MustParsePrefix(prefix)}}
}

func (p pair) clone() pair { return pair{pool: p.pool.Clone(), twin: p.twin.clone()} }

func (p pair) compare(t *testing.T, what string) {
	t.Helper()
	want, got := p.twin.view(), viewOf(p.pool)
	if reflect.DeepEqual(want, got) {
		return
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Fatalf("after %s: -twin, +pool:\n%s", what, diff)
	}
}

// An op is one thing done to both. Its fields mean what the kind needs.
type op struct {
	kind  int
	bits  int
	block netip.Prefix
}

func (o op) String() string { return fmt.Sprintf("op %d (%d, %s)", o.kind, o.bits, o.block) }

// answer is what comes back from an op.
type answer struct {
	Block netip.Prefix
	OK    bool
	// Kind is the type of the error.
	Kind, Text string
}

func answerOf(b netip.Prefix, ok bool, err error) answer {
	return answer{Block: b, OK: ok, Kind: fmt.Sprintf("%T", err), Text: text(err)}
}

func (o op) onPool(p *cidr.Pool) answer {
	var b netip.Prefix
	var ok bool
	var err error
	switch o.kind {
	case 0:
		b, err = p.Allocate(o.bits, cidr.FirstFit)
	case 1:
		b, err = p.Allocate(o.bits, cidr.BestFit)
	case 2:
		err = p.AllocateExact(o.block)
	case 3:
		err = p.Release(o.block)
	case 4:
		b, ok = p.Overlaps(o.block)
	case 5:
		ok = p.Contains(o.block)
	}

	return answerOf(b, ok, err)
}

func (o op) onTwin(w *twin) answer {
	var b netip.Prefix
	var ok bool
	var err error
	switch o.kind {
	case 0:
		b, err = w.allocate(o.bits, cidr.FirstFit)
	case 1:
		b, err = w.allocate(o.bits, cidr.BestFit)
	case 2:
		err = w.allocateExact(o.block)
	case 3:
		err = w.release(o.block)
	case 4:
		b, ok = w.overlaps(o.block)
	case 5:
		ok = w.contains(o.block)
	}

	return answerOf(b, ok, err)
}

// run does an op on both and returns what both answered.
func (p pair) run(t *testing.T, o op) answer {
	t.Helper()
	want, got := o.onTwin(p.twin), o.onPool(p.pool)
	if want != got {
		t.Fatalf("%s with %v taken: -twin, +pool:\n%s", o, p.twin.taken, cmp.Diff(want, got, options))
	}

	return got
}

// A source draws numbers below n: at random, or from the bytes of a fuzzer.
type source func(n int) int

// draw makes an op that has a chance to succeed, and a smaller one to be wrong
// in every way there is.
func (p pair) draw(next source) op {
	pool := p.twin.pool
	o := op{kind: next(6), bits: pool.Bits() + next(pool.Addr().BitLen()-pool.Bits()+1)}
	switch choice := next(16); {
	case choice < 6 && len(p.twin.taken) > 0:
		o.block = p.twin.taken[next(len(p.twin.taken))]
	case choice < 12:
		o.block = netip.PrefixFrom(address(pool, next), o.bits).Masked()
	case choice == 12 && len(p.twin.taken) > 0:
		near := p.twin.taken[next(len(p.twin.taken))]
		o.block = netip.PrefixFrom(near.Addr(), o.bits).Masked()
	default:
		o.block, o.bits = p.wrong(next)
	}

	return o
}

func (p pair) wrong(next source) (netip.Prefix, int) {
	pool := p.twin.pool
	switch next(6) {
	case 0:
		return netip.Prefix{}, -1
	case 1:
		return netip.PrefixFrom(address(pool, next), pool.Bits()+1), pool.Addr().BitLen() + 1
	case 2:
		return netip.PrefixFrom(pool.Addr(), max(0, pool.Bits()-1)).Masked(), pool.Bits() - 1
	case 3:
		return netip.MustParsePrefix("192.0.2.0/28"), 0
	case 4:
		return netip.MustParsePrefix("2001:db8::/124"), 128
	}

	return netip.MustParsePrefix("::ffff:10.0.0.0/124"), 64
}

// address is one inside of a prefix.
func address(in netip.Prefix, next source) netip.Addr {
	bytes := in.Addr().AsSlice()
	for bit := in.Bits(); bit < len(bytes)*8; bit++ {
		if next(2) == 1 {
			bytes[bit/8] |= 0x80 >> (bit % 8)
		}
	}
	a, _ := netip.AddrFromSlice(bytes)

	return a
}

// How often small pools are tried, and how much is done to large ones.
var (
	seeds uint64 = 10
	steps        = 1500
)

// TestSmallPoolsAgreeWithTwin compares everything after every step, and keeps
// some clones that must not notice.
func TestSmallPoolsAgreeWithTwin(t *testing.T) {
	seen := map[string]int{}
	for _, prefix := range []string{
		"10.1.2.0/24", "10.1.2.0/25", "10.1.2.192/28", "10.1.2.3/32", "255.255.255.254/31",
		"fd00::100/120", "fd00::/124", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
	} {
		t.Run(prefix, func(t *testing.T) {
			for seed := range seeds {
				r := rand.New(rand.NewPCG(seed, 7))
				pairs := []pair{newPair(t, prefix)}
				for range 150 {
					at := r.IntN(len(pairs))
					if r.IntN(20) == 0 {
						pairs = append(pairs, pairs[at].clone())
					}
					o := pairs[at].draw(r.IntN)
					seen[fmt.Sprintf("%d %s", o.kind, pairs[at].run(t, o).Kind)]++
					pairs[at].compare(t, o.String())
				}
				for _, p := range pairs {
					p.compare(t, "changes to clones")
				}
			}
		})
	}
	for _, what := range []string{
		"0 <nil>", "0 *cidr.Misfit", "0 *cidr.Exhausted", "1 <nil>", "1 *cidr.Misfit", "1 *cidr.Exhausted",
		"2 <nil>", "2 *cidr.Misfit", "2 *cidr.Overlap", "3 <nil>", "3 *cidr.Misfit", "3 *cidr.NotTaken",
	} {
		if seen[what] < 50 {
			t.Errorf("%q was seen %d times, want at least 50", what, seen[what])
		}
	}
}

// TestLargePoolsAgreeWithTwin compares every answer, and now and then
// everything, on pools with hundreds of scattered blocks.
func TestLargePoolsAgreeWithTwin(t *testing.T) {
	for _, prefix := range []string{"10.0.0.0/8", "0.0.0.0/0", "fd00::/32", "::/0", "fd00:0:0:1:8000::/65"} {
		t.Run(prefix, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 9))
			p := newPair(t, prefix)
			var aside []pair
			for i := range steps {
				o := p.draw(r.IntN)
				for min(o.bits, o.block.Bits()) < p.twin.pool.Bits()+8 && r.IntN(16) > 0 {
					o = p.draw(r.IntN) // or a few blocks fill the pool
				}
				if o.kind == 3 && r.IntN(2) == 0 {
					o.kind = 2
				}
				p.run(t, o)
				if i%(steps/5) == steps/5-1 {
					p.compare(t, o.String())
					aside = append(aside, p.clone())
				}
			}
			for _, a := range aside {
				a.compare(t, "changes to its origin")
			}
			if p.pool.Len() < steps/8 {
				t.Errorf("%d blocks are taken in the end, want more, or the test proves little", p.pool.Len())
			}
		})
	}
}
