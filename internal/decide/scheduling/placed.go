package scheduling

import (
	"github.com/arbor-control/arbor/engine/gang"
)

// Placed reports whether every minimum of the gang is met by bound pods.
func (g *Gang) Placed() bool {
	return gang.Satisfied(g.Tree, g.bound(), g.Rules)[g.Tree.Root()].Satisfied
}
