package delivery

import (
	"fmt"
	"strings"
)

const (
	// maxPaths is how many fields an event names.
	maxPaths = 5
	// maxMessage is how long a text in a status may be.
	maxMessage = 1024 // and a note of an event must not be longer
)

// joined is the first few of some texts.
func joined(all []string) string {
	more := ""
	if n := len(all) - maxPaths; n > 0 {
		all, more = all[:maxPaths], fmt.Sprintf("; and %d more", n)
	}

	return strings.Join(all, "; ") + more
}

// clip keeps a text from filling a status.
func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}

	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}
