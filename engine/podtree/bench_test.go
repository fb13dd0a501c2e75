package podtree_test

import (
	"strconv"
	"testing"

	"github.com/arbor-control/arbor/engine/podtree"
)

// flat has no parents, deep is one chain, wide is one parent with everything
// else directly below it.
func flat(n int) list {
	groups := make(list, n)
	for i := range groups {
		groups[i] = top("worker-" + strconv.Itoa(i))
	}

	return groups
}

func deep(n int) list {
	groups := flat(n)
	for i := 1; i < n; i++ {
		groups[i].Parent = &groups[i-1].Name
	}

	return groups
}

func wide(n int) list {
	groups := flat(n)
	for i := 1; i < n; i++ {
		groups[i].Parent = &groups[0].Name
	}

	return groups
}

func benchmark(b *testing.B, run func(list)) {
	b.Helper()
	shapes := []struct {
		name string
		make func(int) list
	}{{"flat", flat}, {"deep", deep}, {"wide", wide}}
	for _, shape := range shapes {
		for _, n := range []int{10, 1000, 10_000} {
			groups := shape.make(n)
			b.Run(shape.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					run(groups)
				}
			})
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	benchmark(b, func(groups list) {
		if found := podtree.Check(groups); found != nil {
			b.Fatal(found[0])
		}
	})
}

func BenchmarkNew(b *testing.B) {
	benchmark(b, func(groups list) {
		if _, err := podtree.New(podtree.Spec{SubGroups: groups}); err != nil {
			b.Fatal(err)
		}
	})
}
