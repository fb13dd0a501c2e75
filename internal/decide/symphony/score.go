package symphony

import (
	"fmt"
	"slices"
	"strings"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
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
	byName := make(map[string]*enov1.Variation, len(spec.Variations))
	for i := range spec.Variations {
		byName[nameOf(&spec.Variations[i])] = &spec.Variations[i]
	}
	s.problems = unknown(spec, byName)
	if len(s.problems) > 0 {
		return s
	}
	o := order{byName: byName, state: map[string]state{}}
	for i := range spec.Variations {
		if circle := o.visit(&spec.Variations[i]); circle != nil {
			s.problems = []problem{{ReasonCircularDependency, "variations depend on each other in a circle: " + strings.Join(circle, " → ")}}

			return s
		}
	}
	s.variations = o.done

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
func unknown(spec *enov1.SymphonySpec, byName map[string]*enov1.Variation) []problem {
	var all []problem
	for i := range spec.Variations {
		v := &spec.Variations[i]
		for _, d := range v.DependsOn {
			if byName[d.Synthesizer] == nil {
				all = append(all, problem{ReasonUnknownDependency, fmt.Sprintf("variation %q depends on %q, which no variation has as its synthesizer", nameOf(v), d.Synthesizer)})
			}
		}
	}

	return all
}

// An order is found by going to what each variation depends on first.
type order struct {
	byName map[string]*enov1.Variation
	state  map[string]state
	path   []string
	done   []*enov1.Variation
}

type state int

const (
	entered state = iota + 1
	left
)

// visit puts a variation after all that it depends on, or returns a circle.
func (o *order) visit(v *enov1.Variation) []string {
	name := nameOf(v)
	switch o.state[name] {
	case left:
		return nil
	case entered:
		return append(slices.Clone(o.path[slices.Index(o.path, name):]), name)
	}
	o.state[name] = entered
	o.path = append(o.path, name)
	for _, d := range v.DependsOn {
		if circle := o.visit(o.byName[d.Synthesizer]); circle != nil {
			return circle
		}
	}
	o.path = o.path[:len(o.path)-1]
	o.state[name] = left
	o.done = append(o.done, v)

	return nil
}

func nameOf(v *enov1.Variation) string { return v.Synthesizer.Name }
