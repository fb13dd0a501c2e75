package delivery

import (
	"strings"

	"github.com/arbor-control/arbor/internal/identity"
)

// A PruneFirst is a request to delete tombstones of one synthesis without waiting for
// its manifests. See AnnotationPruneFirst.
type PruneFirst struct {
	// Synthesis is the uuid of the synthesis that the request is for.
	Synthesis string
	Objects   []Identity
}

// ParsePruneFirst reads the annotation. Words that do not name an object are ignored.
func ParsePruneFirst(text string) PruneFirst {
	words := strings.Fields(text)
	if len(words) == 0 {
		return PruneFirst{}
	}
	p := PruneFirst{Synthesis: words[0]}
	for _, word := range words[1:] {
		if id, ok := identity.ParseArgument(word); ok {
			p.Objects = append(p.Objects, id)
		}
	}

	return p
}

// String is the value of the annotation.
func (p PruneFirst) String() string {
	words := []string{p.Synthesis}
	for _, id := range p.Objects {
		words = append(words, id.Argument())
	}

	return strings.Join(words, " ")
}
