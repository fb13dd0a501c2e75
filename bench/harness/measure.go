package harness

import (
	"slices"
	"time"
)

// Fastest is the time of one call, at its best: what else runs on the machine
// only ever adds to it.
func Fastest(f func()) time.Duration {
	epoch := time.Now()

	return FastestBy(func() time.Duration { return time.Since(epoch) }, f)
}

// FastestBy is fastest by a clock of its own.
func FastestBy(clock func() time.Duration, f func()) time.Duration {
	const rounds, least = 15, 20 * time.Millisecond
	n := 1
	for began := clock(); ; n++ {
		f()
		if clock()-began > least {
			break
		}
	}
	times := make([]time.Duration, 0, rounds)
	for range rounds {
		began := clock()
		for range n {
			f()
		}
		times = append(times, (clock()-began)/time.Duration(n))
	}

	return slices.Min(times)
}

// Median sorts figures and returns the one in the middle.
func Median(all []float64) float64 {
	slices.Sort(all)

	return all[len(all)/2]
}
