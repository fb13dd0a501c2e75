package render

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/arbor-control/arbor/internal/show"
)

// Age is how long something is there, as kubectl writes it.
func Age(created *metav1.Time, now time.Time) string {
	if created == nil {
		return ""
	}

	return duration.HumanDuration(now.Sub(created.Time))
}

// Texts are notes, and then facts, in lines of some width.
func (s Style) Texts(notes []show.NoteView, facts []string, width int) []string {
	var out []string

	for _, n := range notes {
		for _, text := range Wrap(strings.Fields(Clean(n.Message)), " ", width) {
			out = append(out, s.Severity(n.Severity, text))
		}
	}

	return append(out, Wrap(facts, ", ", width)...)
}

// Wrap joins words to lines of at most some width, unless a word is longer.
func Wrap(words []string, between string, width int) []string {
	var out []string

	for i, word := range words {
		if i < len(words)-1 {
			word += between
		}

		last := len(out) - 1
		if last >= 0 && utf8.RuneCountInString(out[last])+utf8.RuneCountInString(strings.TrimRight(word, " ")) <= width {
			out[last] += word
		} else {
			out = append(out, word)
		}
	}

	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}

	return out
}

// How much is shown unless more is asked for.
const (
	// DefaultRows is how many rows a map has.
	DefaultRows = 16
	// MaxListed is how many rows of a table are shown unless all are asked for.
	MaxListed = 50
)

// Limit returns the first rows, and how many more there are.
func Limit[T any](all []T, every bool) (shown []T, more int) {
	if every || len(all) <= MaxListed {
		return all, 0
	}

	return all[:MaxListed], len(all) - MaxListed
}

// Clean escapes what a terminal would act on instead of showing it: names in
// manifests are written by anybody.
func Clean(s string) string {
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
