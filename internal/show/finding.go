package show

import (
	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/identity"
)

// Severity of a finding.
type Severity string

// Errors are what admission refuses; warnings are what it lets pass.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Reasons of findings beside those of the API and of the schema.
const (
	ReasonUnreadable   = "Unreadable"
	ReasonSyntax       = "InvalidSyntax"
	ReasonDuplicateKey = "DuplicateKey"
	ReasonUnserved     = "VersionNotServed"
	ReasonKind         = "KindUnknown"
	ReasonSameObject   = "DuplicateObject"
	ReasonWarning      = "Warning"
)

// A Finding is one thing that is wrong with one object.
type Finding struct {
	Severity Severity     `json:"severity"`
	Object   identity.Ref `json:"object"`
	// Reason in one word, for programs.
	Reason string `json:"reason"`
	// Field path, empty for the object as a whole.
	Field string `json:"field"`
	// Value of the field, if there is one to show.
	Value string `json:"value"`
	// Message for people.
	Message string `json:"message"`
	// Fix says how to mend it, if that is known.
	Fix string `json:"fix"`
	// Blocked says who stands in whose way, if that is what is wrong.
	Blocked *Blocked `json:"blocked,omitempty"`
}

// Text is the message and the fix.
func (f Finding) Text() string { return WithFix(f.Message, f.Fix) }

// WithFix appends the fix to a message.
func WithFix(message, fix string) string {
	if fix == "" {
		return message
	}

	return message + " (" + fix + ")"
}

// A Located finding knows where it is written.
type Located struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Finding        //nolint:embeddedstructfieldcheck // this is the order in which JSON shows them
}

// Blocked is why a manager cannot remove something that it applies.
type Blocked struct {
	Manager string            `json:"manager"`
	By      []fields.Identity `json:"by"`
	Fate    fields.Fate       `json:"fate"`
}

// A NoteView is a message about an object.
type NoteView struct {
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
}

// CountSeverities counts findings by severity.
func CountSeverities[T any](all []T, severity func(T) Severity) (errs, warnings int) {
	for _, f := range all {
		if severity(f) == SeverityError {
			errs++
		} else {
			warnings++
		}
	}

	return errs, warnings
}

// ObjectsOf are the objects that findings are about, each once, in the order of the findings.
func ObjectsOf(all []Finding) []identity.Ref {
	var out []identity.Ref
	seen := make(map[identity.Ref]bool, len(all))
	for _, f := range all {
		if !seen[f.Object] {
			seen[f.Object], out = true, append(out, f.Object)
		}
	}

	return out
}
