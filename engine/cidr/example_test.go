package cidr_test

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/arbor-control/arbor/engine/cidr"
)

func ExamplePool() {
	pool, err := cidr.New(netip.MustParsePrefix("10.0.0.0/24"))
	if err != nil {
		fmt.Println(err)

		return
	}
	for _, length := range []int{26, 27, 28} {
		block, err := pool.Allocate(length, cidr.BestFit)
		fmt.Println(block, err)
	}
	_, err = pool.Allocate(24, cidr.BestFit)
	fmt.Println(err)
	fmt.Println(pool.AllocateExact(netip.MustParsePrefix("10.0.0.0/25")))

	if full := new(cidr.Exhausted); errors.As(err, &full) {
		fmt.Printf("at most a /%d\n", full.Largest)
	}
	// Output:
	// 10.0.0.0/26 <nil>
	// 10.0.0.64/27 <nil>
	// 10.0.0.96/28 <nil>
	// cannot allocate a /24 from 10.0.0.0/24: the largest free block is a /25; ask for that or less, release blocks, or use another pool
	// cannot allocate 10.0.0.0/25 from 10.0.0.0/24: it contains 10.0.0.0/26, which is taken; use another block
	// at most a /25
}

func ExamplePool_FreeCounts() {
	pool, _ := cidr.New(netip.MustParsePrefix("fd00::/32"))
	_, _ = pool.Allocate(34, cidr.FirstFit)
	for length, n := range pool.FreeCounts() {
		if length%16 == 0 {
			fmt.Printf("/%d: %s\n", length, n)
		}
	}
	// Output:
	// /32: 0
	// /48: 49152
	// /64: 3221225472
	// /80: 211106232532992
	// /96: 13835058055282163712
	// /112: 906694364710971881029632
	// /128: 59421121885698253195157962752
}

func ExamplePool_Free() {
	pool, _ := cidr.New(netip.MustParsePrefix("10.0.0.0/8"))
	_ = pool.AllocateExact(netip.MustParsePrefix("10.32.0.0/12"))
	for block := range pool.Free() {
		fmt.Println(block)
	}
	// Output:
	// 10.0.0.0/11
	// 10.48.0.0/12
	// 10.64.0.0/10
	// 10.128.0.0/9
}

func ExamplePool_Clone() {
	pool, _ := cidr.New(netip.MustParsePrefix("10.0.0.0/24"))
	what := pool.Clone()
	for range 3 {
		_, _ = what.Allocate(26, cidr.FirstFit)
	}
	fmt.Printf("now %.0f%%, then %.0f%%\n", 100*pool.Utilization(), 100*what.Utilization())
	// Output: now 0%, then 75%
}
