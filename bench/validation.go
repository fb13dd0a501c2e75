package main

import (
	"fmt"
	"time"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/bench/harness"
	decide "github.com/arbor-control/arbor/internal/decide/podgroup"
)

// shapes of trees: all children of the root, one long chain, and a root with
// many families of ten.
var shapes = map[string]func(i int) string{
	"flat": func(int) string { return "" },
	"deep": func(i int) string { return name(i - 1) },
	"wide": func(i int) string { return name(i / 10 * 10) },
}

// validation measures the decision on a creation, by size and shape.
func validation(b *harness.Board) error {
	for _, shape := range []string{"flat", "deep", "wide"} {
		took := map[int]time.Duration{}
		for _, size := range []int{10, 1000, 10000} {
			pg := tree(size, shapes[shape])
			if v := decide.Admit(nil, pg); !v.Allowed() {
				return fmt.Errorf("a %s tree of %d is rejected: %s", shape, size, v.Message())
			}
			took[size] = harness.Fastest(func() { decide.Admit(nil, pg) })
			b.Show(harness.Result{Name: fmt.Sprintf("validation/%s/%d", shape, size), Value: took[size].Seconds() * 1000})
		}
		b.Show(harness.Result{Name: "validation/" + shape + "/ratio-10000-to-1000", Value: float64(took[10000]) / float64(took[1000])})
	}

	return nil
}

func tree(size int, parent func(int) string) *v2alpha2.PodGroup {
	pg := &v2alpha2.PodGroup{}
	minimum := int32(1)
	for i := range size {
		s := v2alpha2.SubGroup{Name: name(i), MinMember: &minimum}
		if p := parent(i); p != "" && p != s.Name {
			s.Parent = &p
		}
		pg.Spec.SubGroups = append(pg.Spec.SubGroups, s)
	}

	return pg
}

func name(i int) string {
	if i < 0 {
		return ""
	}

	return fmt.Sprintf("group-%d", i)
}
