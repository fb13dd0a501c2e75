package cidr_test

import (
	"fmt"
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/cidr"
)

func TestMeasures(t *testing.T) {
	type measures struct {
		Largest       int
		Counts        string
		Free, Taken   string
		Utilization   float64
		Fragmentation float64
	}
	const all6, half6 = "340282366920938463463374607431768211456", "170141183460469231731687303715884105728"
	cases := map[string]struct {
		reason string
		pool   string
		taken  []string
		want   measures
	}{
		"Empty": {
			reason: "all is one block", pool: "10.0.0.0/30",
			want: measures{Largest: 30, Counts: "30:1 31:2 32:4", Free: "4", Taken: "0"},
		},
		"Full": {
			reason: "nothing is free, and nothing is scattered", pool: "10.0.0.0/30", taken: []string{"10.0.0.0/30"},
			want: measures{Largest: -1, Counts: "30:0 31:0 32:0", Free: "0", Taken: "4", Utilization: 1},
		},
		"OneBlockLeft": {
			reason: "the rest is one block", pool: "10.0.0.0/30", taken: []string{"10.0.0.0/31"},
			want: measures{Largest: 31, Counts: "30:0 31:1 32:2", Free: "2", Taken: "2", Utilization: 0.5},
		},
		"OneQuarter": {
			reason: "three quarters in one piece are two prefixes", pool: "10.0.0.0/30", taken: []string{"10.0.0.0/32"},
			want: measures{Largest: 31, Counts: "30:0 31:1 32:3", Free: "3", Taken: "1", Utilization: 0.25, Fragmentation: 1. / 3},
		},
		"EverySecond": {
			reason: "a half is free, but only address by address", pool: "10.0.0.0/29",
			taken: []string{"10.0.0.0/32", "10.0.0.2/32", "10.0.0.4/32", "10.0.0.6/32"},
			want:  measures{Largest: 32, Counts: "29:0 30:0 31:0 32:4", Free: "4", Taken: "4", Utilization: 0.5, Fragmentation: 0.75},
		},
		"LargeTaken": {
			reason: "sizes of taken blocks count, not their number", pool: "10.0.0.0/16", taken: []string{"10.0.0.0/17"},
			want: measures{
				Largest: 17, Counts: "16:0 17:1 18:2 19:4 20:8 21:16 22:32 23:64 24:128 25:256 26:512 27:1024 28:2048 29:4096 30:8192 31:16384 32:32768",
				Free: "32768", Taken: "32768", Utilization: 0.5,
			},
		},
		"Single": {
			reason: "a single address is free or not", pool: "fd00::1/128",
			want: measures{Largest: 128, Counts: "128:1", Free: "1", Taken: "0"},
		},
		"SingleTaken": {
			reason: "a single address is free or not", pool: "fd00::1/128", taken: []string{"fd00::1/128"},
			want: measures{Largest: -1, Counts: "128:0", Free: "0", Taken: "1", Utilization: 1},
		},
		"All6": {
			reason: "2^128 does not fit in 128 bits", pool: "::/0",
			want: measures{Largest: 0, Free: all6, Taken: "0"},
		},
		"All6Taken": {
			reason: "2^128 does not fit in 128 bits", pool: "::/0", taken: []string{"::/0"},
			want: measures{Largest: -1, Free: "0", Taken: all6, Utilization: 1},
		},
		"All6InHalves": {
			reason: "a sum of several blocks does not fit either", pool: "::/0", taken: []string{"::/1"},
			want: measures{Largest: 1, Free: half6, Taken: half6, Utilization: 0.5},
		},
		"All6ButOne": {
			reason: "one address counts in 2^128", pool: "::/0", taken: []string{"8000::/128"},
			want: measures{Largest: 1, Free: "340282366920938463463374607431768211455", Taken: "1", Utilization: math.Ldexp(1, -128), Fragmentation: 0.5},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := mustPool(t, c.pool, c.taken...)
			got := measures{
				Free: p.FreeAddresses().String(), Taken: p.TakenAddresses().String(),
				Utilization: p.Utilization(), Fragmentation: p.Fragmentation(),
			}
			if largest, ok := p.Largest(); ok != (largest >= 0) {
				t.Errorf("%s: the largest free block is %d, %t", c.reason, largest, ok)
			} else {
				got.Largest = largest
			}
			for bits, n := range p.FreeCounts() {
				if c.want.Counts != "" {
					got.Counts += fmt.Sprintf(" %d:%s", bits, n)
				}
			}
			if got.Counts != "" {
				got.Counts = got.Counts[1:]
			}
			if diff := cmp.Diff(c.want, got, options); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestCount(t *testing.T) {
	pool := mustPool(t, "::/0")
	cases := map[string]struct {
		reason string
		count  cidr.Count
		text   string
		u      uint64
		i      int64
		f      float64
	}{
		"None":       {reason: "the zero value is zero", text: "0"},
		"TooShort":   {reason: "no block has such a length", count: mustPool(t, "10.0.0.0/8").FreeCount(7), text: "0"},
		"TooLong":    {reason: "no block has such a length", count: mustPool(t, "10.0.0.0/8").FreeCount(33), text: "0"},
		"One":        {reason: "the pool itself", count: pool.FreeCount(0), text: "1", u: 1, i: 1, f: 1},
		"Int64":      {reason: "2^63 is one more than an int64 holds", count: pool.FreeCount(63), text: "9223372036854775808", u: 1 << 63, i: math.MaxInt64, f: math.Ldexp(1, 63)},
		"Uint64":     {reason: "2^64 is one more than a uint64 holds", count: pool.FreeCount(64), text: "18446744073709551616", u: math.MaxUint64, i: math.MaxInt64, f: math.Ldexp(1, 64)},
		"Everything": {reason: "2^128 is one more than 128 bits hold", count: pool.FreeCount(128), text: "340282366920938463463374607431768211456", u: math.MaxUint64, i: math.MaxInt64, f: math.Ldexp(1, 128)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := []any{c.count.String(), c.count.Uint64(), c.count.Int64(), c.count.Float64(), c.count.IsZero()}
			if diff := cmp.Diff([]any{c.text, c.u, c.i, c.f, c.text == "0"}, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
	for a := range 129 {
		for b := range 129 {
			x, y := pool.FreeCount(a), pool.FreeCount(b)
			if got := x.Compare(y); (got < 0) != (a < b) || (got > 0) != (a > b) || (x == y) != (a == b) {
				t.Fatalf("2^%d compared with 2^%d is %d", a, b, got)
			}
		}
	}
}

// TestCountCarries adds up 2^64 from 2^63-1 blocks of a length and two of half
// that size.
func TestCountCarries(t *testing.T) {
	p := mustPool(t, "::/0", "0:0:0:1::/65", "0:0:0:2::/65")
	for bits := 2; bits <= 64; bits++ {
		block := netip.MustParseAddr("8000::").As16()
		block[(bits-1)/8] |= 0x80 >> ((bits - 1) % 8)
		if err := p.AllocateExact(netip.PrefixFrom(netip.AddrFrom16(block), bits)); err != nil {
			t.Fatal(err)
		}
	}
	got := p.FreeCount(64).String() + " " + p.FreeCount(65).String()
	if want := "9223372036854775807 18446744073709551616"; got != want {
		t.Errorf("blocks of /64 and /65: got %s, want %s", got, want)
	}
}

func TestFreeCountsAreOfOneMoment(t *testing.T) {
	p := mustPool(t, "10.0.0.0/30")
	var got string
	for bits, n := range p.FreeCounts() {
		got += fmt.Sprintf("%d:%s ", bits, n)
		if _, err := p.Allocate(32, cidr.FirstFit); err != nil {
			t.Fatal(err)
		}
		if bits == 31 {
			break
		}
	}
	if want := "30:1 31:2 "; got != want {
		t.Errorf("got %s, want %s: the loop began before anything was taken", got, want)
	}
}

// TestDeepest makes a fork at every bit there is.
func TestDeepest(t *testing.T) {
	p := mustPool(t, "::/0")
	last := netip.MustParsePrefix("::/128")
	if err := p.AllocateExact(last); err != nil {
		t.Fatal(err)
	}
	for bits := 128; bits >= 1; bits-- {
		got, err := p.Allocate(bits, cidr.FirstFit)
		if err != nil || got.Bits() != bits {
			t.Fatalf("the half that is left aside at bit %d: %s, %v", bits, got, err)
		}
	}
	if got := p.FreeAddresses(); !got.IsZero() || p.Utilization() != 1 || p.Len() != 129 {
		t.Errorf("%s addresses are free in a full pool of %d blocks", got, p.Len())
	}
	if got, ok := p.Overlaps(netip.MustParsePrefix("::/0")); got != last || !ok {
		t.Errorf("the lowest block is %s, %t, want %s", got, ok, last)
	}
	for _, b := range []string{"::/128", "::1/128", "8000::/1"} {
		if err := p.Release(netip.MustParsePrefix(b)); err != nil {
			t.Error(err)
		}
	}
	if got, want := p.FreeCount(127).String(), "85070591730234615865843651857942052865"; got != want {
		t.Errorf("%s blocks of /127 are free, want %s", got, want)
	}
}
