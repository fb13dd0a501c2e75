// Package verdict is the form of every decision about an object: what is wrong with which field,
// and how to fix it. Webhooks, controllers and commands convert it to their own form.
package verdict

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Problem is one reason to reject an object.
type Problem struct {
	// Reason is one word for machines.
	Reason string `json:"reason"`
	// Field that must change, such as spec.subGroups[2].parent.
	Field string `json:"field"`
	// Value of that field.
	Value string `json:"value,omitempty"`
	// Message describes what is wrong. Tools match on it.
	Message string `json:"message"`
	// Fix describes how to fix it.
	Fix string `json:"fix,omitempty"`
	// Forbidden means that the author of the change lacks a permission, and that
	// the object is not invalid.
	Forbidden bool `json:"-"`
	// About names the other object that it is about, if there is one.
	About string `json:"-"`
}

// A Warning is about something that is allowed but cannot work.
type Warning struct {
	// Reason is a CamelCase identifier for programs, where one is needed.
	Reason  string `json:"reason,omitempty"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (w Warning) String() string { return w.Field + ": " + w.Message }

// A Verdict is the result for an object, or for one change of it. The zero value allows it without
// warnings.
type Verdict struct {
	Problems []Problem `json:"problems,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// Allowed reports whether there are no problems.
func (v Verdict) Allowed() bool { return len(v.Problems) == 0 }

// Message is that of the first problem, "" if there is none.
func (v Verdict) Message() string {
	if v.Allowed() {
		return ""
	}

	return v.Problems[0].Message
}

// Reason is that of the first problem, "" if there is none.
func (v Verdict) Reason() string {
	if v.Allowed() {
		return ""
	}

	return v.Problems[0].Reason
}

// Stored is the warning for a change that leaves what was wrong as it was.
func Stored(what string, found []Problem) Warning {
	more := ""
	if len(found) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(found)-1)
	}

	return Warning{
		Field:   found[0].Field,
		Message: fmt.Sprintf("the stored %s the rule and should be fixed: %s%s", what, found[0].Message, more),
	}
}

// An API server passes warnings on as headers. It asks for at most 256
// characters each, cuts them all once they exceed 4 KiB together, and drops
// those with control characters.
const (
	maxWarnings     = 10
	maxWarningBytes = 256
)

// WarningStrings returns the warnings in a shape that an API server hands on
// whole: at most ten, each at most 256 bytes on one line, and then how many
// more there are.
func (v Verdict) WarningStrings() []string {
	var all []string
	for i, w := range v.Warnings {
		if i == maxWarnings {
			return append(all, fmt.Sprintf("and %d more", len(v.Warnings)-maxWarnings))
		}
		all = append(all, Shorten(oneLine(w.String()), maxWarningBytes))
	}

	return all
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}

		return r
	}, s)
}

// Shorten cuts s to at most limit bytes, never inside a character.
func Shorten(s string, limit int) string {
	const ellipsis = "..."
	if len(s) <= limit {
		return s
	}
	cut := limit - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}

	return s[:cut] + ellipsis
}
