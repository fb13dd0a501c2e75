package podgroup_test

import (
	"strconv"
	"testing"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
)

// chain is one long chain; with spoiled set, every parent is missing.
func chain(n int, spoiled bool) *v2alpha2.PodGroup {
	groups := make([]v2alpha2.SubGroup, n)
	groups[0] = top("worker-0")
	for i := 1; i < n; i++ {
		parent := "worker-" + strconv.Itoa(i-1)
		if spoiled {
			parent = "wroker-" + strconv.Itoa(i-1)
		}
		groups[i] = under(parent, "worker-"+strconv.Itoa(i))
	}

	return group(groups...)
}

func BenchmarkAdmit(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		good, same, bad := chain(n, false), chain(n, false), chain(n, true)
		for name, run := range map[string]func(){
			"create":    func() { podgroup.Admit(nil, good) },
			"unchanged": func() { podgroup.Admit(good, same) },
			"allwrong":  func() { podgroup.Admit(nil, bad) },
		} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}
