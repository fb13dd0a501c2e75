package view_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/engine/cidr"
	"github.com/arbor-control/arbor/internal/view"
)

var key = types.NamespacedName{Namespace: "ns", Name: "pool"}

var (
	now  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mine = view.Block{Owner: "c", Claim: "u"}
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func named(p netip.Prefix) string { return "r-" + p.String() }

// A view that is told anything in any order says the same as one that is told
// the outcome.
func TestAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		v, live, size := view.NewPools(), map[string]view.Block{}, prefix("10.0.0.0/24")
		for range 60 {
			step(r, v, live, &size)
			check(t, seed, v, live, size)
		}
	}
}

// step tells the view one thing, and does the same to the plain map.
func step(r *rand.Rand, v *view.Pools, live map[string]view.Block, size *netip.Prefix) {
	name := fmt.Sprintf("b-%d", r.IntN(12))
	switch r.IntN(10) {
	case 0:
		*size = []netip.Prefix{prefix("10.0.0.0/24"), prefix("10.0.0.0/25"), prefix("10.0.0.0/23")}[r.IntN(3)]
		v.SetPool(key, *size)
	case 1, 2, 3:
		v.Drop(key, name)
		delete(live, name)
	default:
		length := 24 + r.IntN(6)
		address := netip.AddrFrom4([4]byte{10, 0, byte(r.UintN(2)), byte(r.UintN(256))})
		p, err := address.Prefix(length)
		if err != nil {
			panic(err)
		}
		b := view.Block{Name: name, Prefix: p, Owner: "c", Delegated: r.IntN(4) == 0}
		v.SetPool(key, *size)
		v.Put(key, b)
		live[name] = b
	}
}

// check compares with what is obvious: every live block is either taken or
// waits; what is taken does not overlap; what waits has a reason to.
func check(t *testing.T, seed uint64, v *view.Pools, live map[string]view.Block, size netip.Prefix) {
	t.Helper()
	f, ok := v.Figures(key, 100)
	if !ok {
		return
	}
	taken := slices.Collect(f.All.Taken())
	held, pairs := maps.Clone(live), 0
	for _, w := range f.Waiting {
		delete(held, w.Name)
	}
	for _, x := range held {
		for _, y := range held {
			if x.Prefix == y.Prefix && x.Delegated && !y.Delegated {
				pairs++ // a child pool, and the Subnet that holds its block
			}
		}
	}
	if len(taken)+pairs+len(f.Waiting) != len(live) {
		t.Fatalf("seed %d: %d taken, %d of them twice, and %d waiting of %d blocks", seed, len(taken), pairs, len(f.Waiting), len(live))
	}
	for _, w := range f.Waiting {
		outside := size.Bits() > w.Prefix.Bits() || !size.Contains(w.Prefix.Addr())
		if !outside && !slices.ContainsFunc(taken, w.Prefix.Overlaps) {
			t.Fatalf("seed %d: %s waits for nothing", seed, w.Prefix)
		}
		if live[w.Name] != w {
			t.Fatalf("seed %d: %+v waits, there is %+v", seed, w, live[w.Name])
		}
	}
	own := 0
	for _, b := range f.First {
		if live[b.Name] != b || b.Delegated {
			t.Fatalf("seed %d: %+v is listed, there is %+v", seed, b, live[b.Name])
		}
		own++
	}
	if own != f.Own.Len() || f.Own.Len()+f.Delegated != f.All.Len() {
		t.Fatalf("seed %d: %d listed, %d own, %d delegated, %d in all", seed, own, f.Own.Len(), f.Delegated, f.All.Len())
	}
}

// A Subnet that holds the block of a child pool counts once, as delegated, in
// whatever order the two come and go.
func TestDelegatedOnce(t *testing.T) {
	subnet := view.Block{Name: "s", Prefix: prefix("10.0.0.0/26")}
	child := view.Block{Name: "pool/c", Prefix: prefix("10.0.0.0/26"), Delegated: true}
	v := view.NewPools()
	v.SetPool(key, prefix("10.0.0.0/24"))
	expect := func(own, delegated int) {
		t.Helper()
		f, _ := v.Figures(key, 10)
		if f.Own.Len() != own || f.Delegated != delegated || len(f.Waiting) != 0 {
			t.Errorf("%d own, %d delegated, %d waiting, want %d and %d", f.Own.Len(), f.Delegated, len(f.Waiting), own, delegated)
		}
	}
	for _, order := range [][]view.Block{{subnet, child}, {child, subnet}} {
		for _, first := range order {
			v.Put(key, order[0])
			v.Put(key, order[1])
			expect(0, 1)
			v.Drop(key, first.Name)
			if first == child {
				expect(1, 0)
			} else {
				expect(0, 1)
			}
			v.Drop(key, subnet.Name)
			v.Drop(key, child.Name)
			expect(0, 0)
		}
	}
}

// An owner has one block of a pool, reserved or seen, whoever asks first.
func TestOneBlockEach(t *testing.T) {
	v := view.NewPools()
	v.SetPool(key, prefix("10.0.0.0/24"))
	first, err := v.Reserve(key, 26, cidr.FirstFit, mine, named, now)
	if err != nil {
		t.Fatal(err)
	}
	other := mine
	other.Claim = "another"
	taken := &view.OwnerHasBlockError{}
	if _, err := v.Reserve(key, 26, cidr.FirstFit, other, named, now); !errors.As(err, &taken) || taken.Name != first.Name {
		t.Errorf("a second claim of the owner got %v", err)
	}
	v.Put(key, view.Block{Name: "again", Prefix: prefix("10.0.0.128/26"), Owner: mine.Owner, Claim: mine.Claim})
	v.Drop(key, first.Name)
	if _, err := v.Reserve(key, 26, cidr.FirstFit, other, named, now); !errors.As(err, &taken) || taken.Name != "again" {
		t.Errorf("a second claim of the owner got %v", err)
	}
	v.Drop(key, "again")
	if _, err := v.Reserve(key, 26, cidr.FirstFit, other, named, now); err != nil {
		t.Errorf("what was given back is refused: %v", err)
	}
}

func TestReserve(t *testing.T) {
	v := view.NewPools()
	if _, err := v.Reserve(key, 26, cidr.FirstFit, mine, named, now); !errors.Is(err, view.ErrNoPool) {
		t.Errorf("a pool that is not there gave %v", err)
	}
	v.SetPool(key, prefix("10.0.0.0/24"))
	v.Put(key, view.Block{Name: "child", Prefix: prefix("10.0.0.0/25"), Delegated: true})

	b, err := v.Reserve(key, 26, cidr.FirstFit, mine, named, now)
	if want := (view.Block{Name: "r-10.0.0.128/26", Prefix: prefix("10.0.0.128/26"), Owner: "c", Claim: "u"}); err != nil || b != want {
		t.Fatalf("got %+v, %v; want %+v: what is delegated is not free", b, err, want)
	}
	if !v.Serves(key, "u") || len(v.Unseen(key, now.Add(time.Second))) != 1 || len(v.Unseen(key, now)) != 0 {
		t.Error("it is not known as reserved")
	}
	v.Put(key, b) // somebody sees it
	if !v.Serves(key, "u") || len(v.Unseen(key, now.Add(time.Second))) != 0 {
		t.Error("it is not known as seen")
	}
	var overlap *cidr.Overlap
	if err := v.ReserveExact(key, view.Block{Name: "x", Prefix: prefix("10.0.0.128/27")}, now); !errors.As(err, &overlap) {
		t.Errorf("a taken block was reserved: %v", err)
	}
	if err := v.ReserveExact(key, view.Block{Name: "x", Prefix: prefix("10.0.0.192/26")}, now); err != nil {
		t.Error(err)
	}
	var exhausted *cidr.Exhausted
	if _, err := v.Reserve(key, 28, cidr.BestFit, mine, named, now); !errors.As(err, &exhausted) {
		t.Errorf("a full pool gave %v", err)
	}
	v.Drop(key, "x") // it could not be made
	if b, err := v.Reserve(key, 28, cidr.BestFit, mine, named, now); err != nil || b.Prefix != prefix("10.0.0.192/28") {
		t.Errorf("what was given back is not free: %+v, %v", b, err)
	}
}

// Two blocks that overlap: the second waits, and is there when the first goes.
func TestWaiting(t *testing.T) {
	v := view.NewPools()
	v.SetPool(key, prefix("10.0.0.0/24"))
	first := view.Block{Name: "a", Prefix: prefix("10.0.0.0/25")}
	second := view.Block{Name: "b", Prefix: prefix("10.0.0.0/26")}
	v.Put(key, first)
	v.Put(key, second)
	f, _ := v.Figures(key, 10)
	if diff := cmp.Diff([]view.Block{second}, f.Waiting, cmp.Comparer(func(a, b view.Block) bool { return a == b })); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	v.Drop(key, "a")
	if f, _ := v.Figures(key, 10); len(f.Waiting) != 0 || !f.All.Contains(second.Prefix) {
		t.Errorf("the second still waits: %+v", f.Waiting)
	}
}

func TestForgets(t *testing.T) {
	v := view.NewPools()
	v.Put(key, view.Block{Name: "early", Prefix: prefix("10.0.0.0/25")}) // before its pool
	if _, ok := v.Figures(key, 1); ok {
		t.Error("a pool without a prefix has figures")
	}
	v.SetPool(key, prefix("10.0.0.0/24"))
	if f, ok := v.Figures(key, 1); !ok || f.Own.Len() != 1 {
		t.Error("what was there before its pool is not counted")
	}
	v.DropPool(key)
	v.Drop(key, "early")
	if _, ok := v.Figures(key, 1); ok {
		t.Error("a pool that is gone has figures")
	}
}

// Many writers and readers: the race detector is the judge, and in the end the
// figures are right.
func TestConcurrent(t *testing.T) {
	v := view.NewPools()
	v.SetPool(key, prefix("10.0.0.0/16"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if _, err := v.Reserve(key, 28, cidr.BestFit, mine, named, now); err != nil {
					t.Error(err)
				}
				v.Figures(key, 3)
			}
		})
	}
	wg.Wait()
	if f, _ := v.Figures(key, 2000); f.Own.Len() != 1600 || len(f.First) != 1600 || !strings.HasPrefix(f.First[0].Name, "r-10.0.0.0/") {
		t.Errorf("%d blocks", f.Own.Len())
	}
}
