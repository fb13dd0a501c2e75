package render

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/arbor-control/arbor/internal/show"
)

// A Style is what the place that output goes to can show.
type Style struct {
	Colour  bool
	Unicode bool
	// Terminal is true if output can be drawn over.
	Terminal bool
}

// StyleOf looks at a writer and the environment.
func StyleOf(w io.Writer, getenv func(string) string) Style {
	terminal := isTerminal(w) && getenv("TERM") != "dumb"

	return Style{Colour: terminal && getenv("NO_COLOR") == "", Unicode: speaksUTF8(getenv), Terminal: terminal}
}

func isTerminal(w io.Writer) bool {
	f, ok := target(w).(*os.File)

	return ok && term.IsTerminal(int(f.Fd()))
}

// A Buffer keeps what will be printed to a writer, and has the style and the width of that writer.
type Buffer struct {
	bytes.Buffer

	to io.Writer
}

// NewBuffer returns an empty buffer for a writer.
func NewBuffer(to io.Writer) *Buffer { return &Buffer{to: to} }

// target is where the content of a writer is printed in the end.
func target(w io.Writer) io.Writer {
	if b, ok := w.(*Buffer); ok {
		return b.to
	}

	return w
}

// defaultWidth is what every terminal has.
const defaultWidth = 80

// WidthOf is how many columns a writer has: those of the terminal, or what
// COLUMNS says, as it does below watch.
func WidthOf(w io.Writer, getenv func(string) string) int {
	if f, ok := target(w).(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}

	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}

	return defaultWidth
}

// speaksUTF8 follows the order in which the C library reads the locale of
// characters.
func speaksUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(getenv(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}

	return false
}

// ANSI colours.
const (
	Bold    = "1"
	Dim     = "2"
	Red     = "31"
	Green   = "32"
	Yellow  = "33"
	Magenta = "35"
	Cyan    = "36"
)

// Paint colors a text, if the place shows colors.
func (s Style) Paint(colour, text string) string {
	if !s.Colour || text == "" {
		return text
	}

	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Severity colors a text by a severity.
func (s Style) Severity(sev show.Severity, text string) string {
	if sev == show.SeverityError {
		return s.Paint(Red, text)
	}

	return s.Paint(Yellow, text)
}
