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
	red    = "31"
	yellow = "33"
	bold   = "1"
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
