package event

import (
	"fmt"
	"strings"
)

const (
	// MaxPaths is how many fields an event names.
	MaxPaths = 5
	// MaxMessage is how long a text in a status may be.
	MaxMessage = 1024 // and a note of an event must not be longer
)

// Join is the first few of some texts.
func Join(all []string) string {
	more := ""
	if n := len(all) - MaxPaths; n > 0 {
		all, more = all[:MaxPaths], fmt.Sprintf("; and %d more", n)
	}

	return strings.Join(all, "; ") + more
}

// Clip keeps a text from filling a status.
func Clip(text string) string {
	if len(text) <= MaxMessage {
		return text
	}

	return strings.ToValidUTF8(text[:MaxMessage-3], "") + "..."
}
