package render

import "github.com/arbor-control/arbor/internal/show"

// A Note is something to say about a subgroup.
type Note struct {
	Severity show.Severity
	Text     string
}
