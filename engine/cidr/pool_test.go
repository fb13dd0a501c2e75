package cidr_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/engine/cidr"
)

// pfx reads a prefix, and "" as none.
func pfx(text string) netip.Prefix {
	if text == "" {
		return netip.Prefix{}
	}

	return netip.MustParsePrefix(text)
}

func text(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}

func TestNew(t *testing.T) {
	cases := map[string]struct {
		reason string
		prefix netip.Prefix
		want   string
	}{
		"IPv4":          {reason: "any length will do", prefix: pfx("10.0.0.0/8")},
		"IPv4All":       {reason: "all of IPv4 is a prefix", prefix: pfx("0.0.0.0/0")},
		"IPv4Single":    {reason: "a single address is a prefix", prefix: pfx("10.0.0.7/32")},
		"IPv6":          {reason: "any length will do", prefix: pfx("fd00::/48")},
		"IPv6All":       {reason: "all of IPv6 is a prefix", prefix: pfx("::/0")},
		"IPv6Single":    {reason: "a single address is a prefix", prefix: pfx("fd00::7/128")},
		"AroundMapped":  {reason: "a range that contains the mapped addresses is IPv6", prefix: pfx("::/80")},
		"None":          {reason: "a zero value is not a prefix", want: "cannot use invalid Prefix as a pool: it is not a prefix; write an address and a length, like 10.0.0.0/16 or fd00::/48"},
		"TooLong":       {reason: "there are 32 bits in an IPv4 address", prefix: netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 33), want: "cannot use invalid Prefix as a pool: it is not a prefix; write an address and a length, like 10.0.0.0/16 or fd00::/48"},
		"Unmasked":      {reason: "the message contains the correction", prefix: pfx("10.0.0.5/24"), want: "cannot use 10.0.0.5/24 as a pool: its address has bits behind the length; write 10.0.0.0/24"},
		"Unmasked6":     {reason: "the message contains the correction", prefix: pfx("fd00::1/64"), want: "cannot use fd00::1/64 as a pool: its address has bits behind the length; write fd00::/64"},
		"Mapped":        {reason: "IPv4 must be written as such", prefix: pfx("::ffff:10.0.0.5/120"), want: "cannot use ::ffff:10.0.0.5/120 as a pool: it is IPv4 written as IPv6; write 10.0.0.0/24"},
		"MappedAll":     {reason: "all of IPv4 too", prefix: pfx("::ffff:0.0.0.0/96"), want: "cannot use ::ffff:0.0.0.0/96 as a pool: it is IPv4 written as IPv6; write 0.0.0.0/0"},
		"MappedAddress": {reason: "a mapped address with a short length is IPv6 without its mask", prefix: pfx("::ffff:10.0.0.0/64"), want: "cannot use ::ffff:10.0.0.0/64 as a pool: its address has bits behind the length; write ::/64"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := cidr.New(c.prefix)
			if diff := cmp.Diff(c.want, text(err)); diff != "" {
				t.Fatalf("%s: -want, +got:\n%s", c.reason, diff)
			}
			if misfit := new(cidr.Misfit); err != nil && !errors.As(err, &misfit) {
				t.Errorf("%s: the error is a %T, want a Misfit", c.reason, err)
			}
			if err == nil && (p.Prefix() != c.prefix || p.Len() != 0) {
				t.Errorf("%s: got %s with %d blocks", c.reason, p.Prefix(), p.Len())
			}
		})
	}
}

func TestAllocate(t *testing.T) {
	cases := map[string]struct {
		reason string
		pool   string
		taken  []string
		length int
		first  string
		best   string
		err    string
	}{
		"Whole":       {reason: "a block may be all of the pool", pool: "10.0.0.0/24", length: 24, first: "10.0.0.0/24", best: "10.0.0.0/24"},
		"Beginning":   {reason: "an empty pool is cut at its beginning", pool: "10.0.0.0/24", length: 26, first: "10.0.0.0/26", best: "10.0.0.0/26"},
		"Single":      {reason: "a pool of one address has one block", pool: "10.0.0.9/32", length: 32, first: "10.0.0.9/32", best: "10.0.0.9/32"},
		"Single6":     {reason: "a pool of one address has one block", pool: "fd00::9/128", length: 128, first: "fd00::9/128", best: "fd00::9/128"},
		"LastAddress": {reason: "the last address of all can be taken", pool: "::/0", taken: []string{"::/1", "8000::/2", "c000::/3", "e000::/4", "f000::/5"}, length: 6, first: "f800::/6", best: "f800::/6"},
		"Differ": {
			reason: "the lowest address is in the larger block", pool: "10.0.0.0/24", taken: []string{"10.0.0.128/26"}, length: 27,
			first: "10.0.0.0/27", best: "10.0.0.192/27",
		},
		"LowestOfEquals": {
			reason: "of two blocks of the same size the lower one is taken", pool: "10.0.0.0/24", taken: []string{"10.0.0.0/26", "10.0.0.192/26"}, length: 27,
			first: "10.0.0.64/27", best: "10.0.0.64/27",
		},
		"Behind": {
			reason: "a free block after all taken ones is found too", pool: "10.0.0.0/24", taken: []string{"10.0.0.0/26", "10.0.0.64/27"}, length: 26,
			first: "10.0.0.128/26", best: "10.0.0.128/26",
		},
		"TooSmallBefore": {
			reason: "blocks that are too small are passed over", pool: "10.0.0.0/24", taken: []string{"10.0.0.1/32", "10.0.0.64/26"}, length: 26,
			first: "10.0.0.128/26", best: "10.0.0.128/26",
		},
		"Scattered": {
			reason: "half of it is free, but in halves", pool: "10.0.0.0/24", taken: []string{"10.0.0.0/26", "10.0.0.128/26"}, length: 25,
			err: "cannot allocate a /25 from 10.0.0.0/24: the largest free block is a /26; ask for that or less, release blocks, or use another pool",
		},
		"Full": {
			reason: "nothing is left", pool: "fd00::/127", taken: []string{"fd00::/128", "fd00::1/128"}, length: 128,
			err: "cannot allocate a /128 from fd00::/127: every address is taken; release blocks or use another pool",
		},
		"LargerThanPool": {
			reason: "a block is inside of its pool", pool: "10.0.0.0/24", length: 23,
			err: "cannot use length 23 in pool 10.0.0.0/24: use one from 24 to 32",
		},
		"LongerThanAddress": {
			reason: "IPv4 has 32 bits", pool: "10.0.0.0/24", length: 33,
			err: "cannot use length 33 in pool 10.0.0.0/24: use one from 24 to 32",
		},
		"Negative": {
			reason: "a length is not negative", pool: "::/0", length: -1,
			err: "cannot use length -1 in pool ::/0: use one from 0 to 128",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for strategy, want := range map[cidr.Strategy]string{cidr.FirstFit: c.first, cidr.BestFit: c.best} {
				p := mustPool(t, c.pool, c.taken...)
				got, err := p.Allocate(c.length, strategy)
				if got != pfx(want) || text(err) != c.err {
					t.Errorf("%s: %s: got %s, %v, want %s, %s", c.reason, strategy, got, err, want, c.err)
				}
				if taken := p.Contains(got); taken != (err == nil) {
					t.Errorf("%s: %s: is the block taken now: %t", c.reason, strategy, taken)
				}
			}
		})
	}
}

func TestAllocateUnknownStrategy(t *testing.T) {
	p := mustPool(t, "10.0.0.0/24")
	_, err := p.Allocate(26, cidr.Strategy(7))
	want := "cannot allocate a /26 from 10.0.0.0/24: there is no strategy 7"
	if text(err) != want || p.Len() != 0 {
		t.Errorf("got %v and %d blocks, want %s and none", err, p.Len(), want)
	}
	got := fmt.Sprint(cidr.FirstFit, cidr.BestFit, cidr.Strategy(7))
	if want := "FirstFit BestFit Strategy(7)"; got != want {
		t.Errorf("strategies are called %s, want %s", got, want)
	}
}

// TestErrors covers the words of AllocateExact and Release, and that neither
// changes anything when it fails.
func TestErrors(t *testing.T) {
	const malformed = "it is not a prefix; write an address and a length, like 10.0.0.0/16 or fd00::/48"
	v4, v6 := []string{"10.0.4.0/22", "10.0.9.0/24", "10.0.10.0/24"}, []string{"fd00::/64", "fd00:0:0:2::/64"}
	cases := map[string]struct {
		reason  string
		pool    string
		taken   []string
		block   netip.Prefix
		take    string
		release string
		// both is the common error of both for prefixes that cannot be blocks.
		both string
	}{
		"Free":        {reason: "nothing is in the way", pool: "10.0.0.0/16", taken: v4, block: pfx("10.0.8.0/24"), release: "cannot release 10.0.8.0/24 to 10.0.0.0/16: nothing of it is taken"},
		"Taken":       {reason: "it is taken as such", pool: "10.0.0.0/16", taken: v4, block: pfx("10.0.4.0/22"), take: "cannot allocate 10.0.4.0/22 from 10.0.0.0/16: it is taken; use another block"},
		"Inside":      {reason: "a part of a taken block is neither free nor taken as such", pool: "10.0.0.0/16", taken: v4, block: pfx("10.0.5.0/24"), take: "cannot allocate 10.0.5.0/24 from 10.0.0.0/16: it is inside of 10.0.4.0/22, which is taken; use another block", release: "cannot release 10.0.5.0/24 to 10.0.0.0/16: it is inside of 10.0.4.0/22, which is taken; release blocks as they were taken"},
		"SameAddress": {reason: "the same address with another length is another block", pool: "10.0.0.0/16", taken: v4, block: pfx("10.0.4.0/24"), take: "cannot allocate 10.0.4.0/24 from 10.0.0.0/16: it is inside of 10.0.4.0/22, which is taken; use another block", release: "cannot release 10.0.4.0/24 to 10.0.0.0/16: it is inside of 10.0.4.0/22, which is taken; release blocks as they were taken"},
		"Around":      {reason: "the lowest of the blocks inside is named", pool: "10.0.0.0/16", taken: v4, block: pfx("10.0.8.0/22"), take: "cannot allocate 10.0.8.0/22 from 10.0.0.0/16: it contains 10.0.9.0/24, which is taken; use another block", release: "cannot release 10.0.8.0/22 to 10.0.0.0/16: it contains 10.0.9.0/24, which is taken; release blocks as they were taken"},
		"Empty":       {reason: "nothing is taken from an empty pool", pool: "10.0.0.0/16", block: pfx("10.0.0.0/16"), release: "cannot release 10.0.0.0/16 to 10.0.0.0/16: nothing of it is taken"},
		"Around6":     {reason: "IPv6 is no different", pool: "fd00::/48", taken: v6, block: pfx("fd00::/62"), take: "cannot allocate fd00::/62 from fd00::/48: it contains fd00::/64, which is taken; use another block", release: "cannot release fd00::/62 to fd00::/48: it contains fd00::/64, which is taken; release blocks as they were taken"},
		"None":        {reason: "a zero value is not a block", pool: "10.0.0.0/16", both: "cannot use invalid Prefix in pool 10.0.0.0/16: " + malformed},
		"TooLong":     {reason: "an IPv6 address has 128 bits", pool: "fd00::/48", block: netip.PrefixFrom(netip.MustParseAddr("fd00::"), 129), both: "cannot use invalid Prefix in pool fd00::/48: " + malformed},
		"Family6":     {reason: "families do not mix", pool: "10.0.0.0/16", taken: v4, block: pfx("fd00::/64"), both: "cannot use fd00::/64 in pool 10.0.0.0/16: it is IPv6 and the pool is IPv4; use a block of the pool's family"},
		"Family4":     {reason: "families do not mix", pool: "::/0", taken: v6, block: pfx("0.0.0.0/0"), both: "cannot use 0.0.0.0/0 in pool ::/0: it is IPv4 and the pool is IPv6; use a block of the pool's family"},
		"Mapped":      {reason: "a second name for the same block must not get in", pool: "10.0.0.0/16", taken: v4, block: pfx("::ffff:10.0.4.0/118"), both: "cannot use ::ffff:10.0.4.0/118 in pool 10.0.0.0/16: it is IPv4 written as IPv6; write 10.0.4.0/22"},
		"MappedIn6":   {reason: "in a pool of IPv6 it is a range like any other", pool: "::/80", block: pfx("::ffff:10.0.4.0/118"), release: "cannot release ::ffff:10.0.4.0/118 to ::/80: nothing of it is taken"},
		"Unmasked":    {reason: "a block has one name", pool: "10.0.0.0/16", taken: v4, block: pfx("10.0.4.1/22"), both: "cannot use 10.0.4.1/22 in pool 10.0.0.0/16: its address has bits behind the length; write 10.0.4.0/22"},
		"Outside":     {reason: "a block is inside of its pool", pool: "10.0.0.0/16", taken: v4, block: pfx("10.1.0.0/24"), both: "cannot use 10.1.0.0/24 in pool 10.0.0.0/16: it is outside of the pool; use a block inside"},
		"Larger":      {reason: "a block is not larger than its pool", pool: "10.0.0.0/16", taken: v4, block: pfx("10.0.0.0/15"), both: "cannot use 10.0.0.0/15 in pool 10.0.0.0/16: it is larger than the pool; use a length from 16"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for verb, want := range map[string]string{"AllocateExact": c.take, "Release": c.release} {
				if c.both != "" {
					want = c.both
				}
				p := mustPool(t, c.pool, c.taken...)
				before, do := viewOf(p), p.Release
				if verb == "AllocateExact" {
					do = p.AllocateExact
				}
				err := do(c.block)
				if diff := cmp.Diff(want, text(err)); diff != "" {
					t.Errorf("%s: %s: -want, +got:\n%s", c.reason, verb, diff)
				}
				if diff := cmp.Diff(before, viewOf(p), options); (diff == "") != (err != nil) {
					t.Errorf("%s: %s changed:\n%s", c.reason, verb, diff)
				}
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	cases := map[string]struct {
		reason   string
		pool     string
		taken    []string
		block    netip.Prefix
		want     string
		contains bool
	}{
		"Same":       {reason: "a block overlaps with itself", pool: "10.0.0.0/8", taken: []string{"10.1.0.0/16", "10.2.0.0/16"}, block: pfx("10.2.0.0/16"), want: "10.2.0.0/16", contains: true},
		"Inside":     {reason: "a part is not taken as such", pool: "10.0.0.0/8", taken: []string{"10.1.0.0/16", "10.2.0.0/16"}, block: pfx("10.2.3.0/24"), want: "10.2.0.0/16"},
		"Around":     {reason: "the lowest one comes first, whatever the order they were taken in", pool: "10.0.0.0/8", taken: []string{"10.3.0.0/16", "10.2.0.0/16", "10.1.128.0/17"}, block: pfx("10.0.0.0/14"), want: "10.1.128.0/17"},
		"Pool":       {reason: "the pool is a block too", pool: "10.0.0.0/8", taken: []string{"10.3.0.0/16", "10.2.0.0/16"}, block: pfx("10.0.0.0/8"), want: "10.2.0.0/16"},
		"AroundPool": {reason: "the pool may be asked about what is larger than it", pool: "10.0.0.0/8", taken: []string{"10.3.0.0/16"}, block: pfx("0.0.0.0/0"), want: "10.3.0.0/16"},
		"Unmasked":   {reason: "bits behind the length do not count, but make it no block", pool: "10.0.0.0/8", taken: []string{"10.3.0.0/16"}, block: pfx("10.3.4.5/16"), want: "10.3.0.0/16"},
		"Between":    {reason: "a free block overlaps with nothing", pool: "10.0.0.0/8", taken: []string{"10.1.0.0/16", "10.3.0.0/16"}, block: pfx("10.2.0.0/16")},
		"Outside":    {reason: "a block elsewhere overlaps with nothing", pool: "10.0.0.0/8", taken: []string{"10.1.0.0/16"}, block: pfx("11.1.0.0/16")},
		"Empty":      {reason: "an empty pool overlaps with nothing", pool: "10.0.0.0/8", block: pfx("10.0.0.0/8")},
		"None":       {reason: "a zero value overlaps with nothing", pool: "10.0.0.0/8", taken: []string{"10.0.0.0/8"}},
		"Family":     {reason: "families do not mix", pool: "10.0.0.0/8", taken: []string{"10.0.0.0/8"}, block: pfx("::/0")},
		"Mapped":     {reason: "mapped addresses are IPv6", pool: "10.0.0.0/8", taken: []string{"10.0.0.0/8"}, block: pfx("::ffff:10.0.0.0/104")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := mustPool(t, c.pool, c.taken...)
			got, ok := p.Overlaps(c.block)
			if got != pfx(c.want) || ok != (c.want != "") {
				t.Errorf("%s: got %s, %t, want %q", c.reason, got, ok, c.want)
			}
			if got := p.Contains(c.block); got != c.contains {
				t.Errorf("%s: Contains is %t", c.reason, got)
			}
		})
	}
}

func TestLoopsCanEndEarly(t *testing.T) {
	p := mustPool(t, "10.0.0.0/24", "10.0.0.64/28", "10.0.0.128/28", "10.0.0.160/28")
	for name, all := range map[string][]netip.Prefix{"Taken": slices.Collect(p.Taken()), "Free": slices.Collect(p.Free())} {
		loop := p.Taken()
		if name == "Free" {
			loop = p.Free()
		}
		for n := range all {
			var some []netip.Prefix
			for b := range loop {
				if some = append(some, b); len(some) > n {
					break
				}
			}
			if diff := cmp.Diff(all[:n+1], some, options); diff != "" {
				t.Errorf("the first %d of %s: -want, +got:\n%s", n+1, name, diff)
			}
		}
	}
}
