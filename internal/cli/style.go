package cli

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// A style is what the place that output goes to can show.
type style struct {
	colour  bool
	unicode bool
}

// styleOf looks at a writer and the environment.
func styleOf(w io.Writer, getenv func(string) string) style {
	return style{
		colour:  isTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb",
		unicode: speaksUTF8(getenv),
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)

	return ok && term.IsTerminal(int(f.Fd()))
}

// defaultWidth is what every terminal has.
const defaultWidth = 80

// widthOf is how many columns a writer has: those of the terminal, or what
// COLUMNS says, as it does below watch.
func widthOf(w io.Writer, getenv func(string) string) int {
	if f, ok := w.(*os.File); ok {
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
	bold    = "1"
	dim     = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
)

func (s style) paint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}

	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s style) severity(sev Severity, text string) string {
	if sev == SeverityError {
		return s.paint(red, text)
	}

	return s.paint(yellow, text)
}

// clean escapes what a terminal would act on instead of showing it: names in
// manifests are written by anybody.
func clean(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}

	var out strings.Builder

	for _, r := range s {
		if hidden(r) {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			out.WriteRune(r)
		}
	}

	return out.String()
}

func hidden(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
