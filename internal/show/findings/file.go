package findings

import (
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show"
)

// FileError is the finding for a part of a file that cannot be read.
func FileError(name string, e *manifest.Error) show.Located {
	reason := show.ReasonSyntax
	if e.Unreadable {
		reason = show.ReasonUnreadable
	}

	return show.Located{File: name, Line: e.Line, Finding: show.Finding{
		Severity: show.SeverityError, Reason: reason, Message: e.Error(), Fix: e.Fix,
	}}
}
