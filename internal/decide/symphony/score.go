package symphony

import (
	"fmt"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/engine/tree"
)

// A score is what the variations of a Symphony come to.
type score struct {
	// variations, each after those that it depends on.
	variations []*enov1.Variation
	// problems are why nothing can be done.
	problems []problem
}

// A problem is something that is wrong with a spec.
type problem struct{ reason, message string }

// read finds the order of the variations, and everything that is wrong with them.
func read(spec *enov1.SymphonySpec) score {
	s := score{problems: names(spec)}
	if len(s.problems) > 0 {
		return s // names do not identify dependencies then
	}
	byName := make(map[string]int, len(spec.Variations))
	for i := range spec.Variations {
		byName[nameOf(&spec.Variations[i])] = i
	}
	s.problems = unknown(spec, byName)
	if len(s.problems) > 0 {
		return s
	}
	order, cycle := tree.Order(len(spec.Variations), func(i int) []int {
		var on []int
		for _, d := range spec.Variations[i].DependsOn {
			on = append(on, byName[d.Synthesizer])
		}

		return on
	})
	if cycle != nil {
		var path []string
		for _, i := range append(cycle, cycle[0]) {
			path = append(path, nameOf(&spec.Variations[i]))
		}
		s.problems = []problem{{ReasonCircularDependency, "variations depend on each other in a circle: " + strings.Join(path, " → ")}}

		return s
	}
	for _, i := range order {
		s.variations = append(s.variations, &spec.Variations[i])
	}

	return s
}

// names finds variations with equal names.
func names(spec *enov1.SymphonySpec) []problem {
	var all []problem
	count := map[string]int{}
	for i := range spec.Variations {
		name := nameOf(&spec.Variations[i])
		if name == "" {
			all = append(all, problem{ReasonMissingSynthesizer, fmt.Sprintf("variations[%d] names no synthesizer", i)})

			continue
		}
		if count[name]++; count[name] == 2 {
			all = append(all, problem{ReasonDuplicateSynthesizer, fmt.Sprintf("several variations have synthesizer %q; there can be one", name)})
		}
	}

	return all
}

// unknown finds dependencies on variations that there are not.
func unknown(spec *enov1.SymphonySpec, byName map[string]int) []problem {
	var all []problem
	for i := range spec.Variations {
		v := &spec.Variations[i]
		for _, d := range v.DependsOn {
			if _, found := byName[d.Synthesizer]; !found {
				all = append(all, problem{ReasonUnknownDependency, fmt.Sprintf("variation %q depends on %q, which no variation has as its synthesizer", nameOf(v), d.Synthesizer)})
			}
		}
	}

	return all
}

func nameOf(v *enov1.Variation) string { return v.Synthesizer.Name }
