package delivery

import (
	"cmp"
	"strings"
	"time"
)

// A Suspension is since when and why delivery writes nothing for a composition. See
// AnnotationSuspend.
type Suspension struct {
	// Since is zero if the annotation has no time.
	Since  time.Time
	Reason string
}

// ParseSuspension reads the annotation. Whatever its value is, it suspends.
func ParseSuspension(text string) Suspension {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	since, err := time.Parse(time.RFC3339, first)
	if err != nil {
		return Suspension{Reason: strings.TrimSpace(text)}
	}

	return Suspension{Since: since, Reason: strings.TrimSpace(rest)}
}

// Annotation is the value of the annotation.
func (s Suspension) Annotation() string {
	return s.Since.UTC().Format(time.RFC3339) + " " + s.Reason
}

// String describes the suspension in a status.
func (s Suspension) String() string {
	text := "Suspended"
	if !s.Since.IsZero() {
		text += " since " + s.Since.UTC().Format(time.RFC3339)
	}

	return text + ": " + cmp.Or(s.Reason, "no reason given")
}
