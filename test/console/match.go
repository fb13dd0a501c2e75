package console

import (
	"fmt"
	"regexp"
	"strings"
)

// variable are the parts of output that differ between two runs. Texts of the same form are equal.
var variable = []struct {
	like *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`\b\d{8}T\d{6}(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\b[0-9a-f]{40,64}\b`), "<digest>"},
	{regexp.MustCompile(`-[0-9bcdf]{1}[0-9bcdfghjklmnpqrstvwxz]{7,9}-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-<hash>"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-<end>"},
	{regexp.MustCompile(`<age>|\b(\d+(\.\d+)?(ms|µs|s|m|h|d|y))+\b`), "<age>"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (s|seconds?)\b`), "<age>"},
	{regexp.MustCompile(`\bprocess \d+\b`), "<process>"},
	{regexp.MustCompile(`\b10\.96\.\d+\.\d+\b`), "<address>"}, // of a Service
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<address>"},
}

// normal returns a line without what differs between two runs.
func normal(line string) string {
	for _, v := range variable {
		line = v.like.ReplaceAllString(line, v.name)
	}

	return strings.Join(strings.Fields(line), " ")
}

// Match compares output with what a page shows. It returns what differs.
func Match(shown []string, output string) error {
	got := strings.Split(strings.TrimRight(output, "\n"), "\n")
	if strings.TrimSpace(output) == "" {
		got = nil
	}
	want := make([]string, 0, len(shown))
	for _, line := range shown {
		want = append(want, normal(line))
	}
	is := make([]string, 0, len(got))
	for _, line := range got {
		is = append(is, normal(line))
	}
	if i := furthest(trim(want), trim(is)); i >= 0 {
		return fmt.Errorf("line %d of the output differs; the page shows\n%s\n\nand the command prints\n%s", i+1, strings.Join(shown, "\n"), output)
	}

	return nil
}

// trim removes empty lines at both ends.
func trim(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}

	return lines
}

// furthest returns -1 if the lines match, else the first line of the output that cannot be
// matched. The "…" that is alone in a line matches any number of lines, also none.
func furthest(want, is []string) int {
	// reached[j] reports whether the lines so far match the first j lines of the output.
	reached := make([]bool, len(is)+1)
	reached[0] = true
	last := 0
	for _, w := range want {
		next := make([]bool, len(is)+1)
		for j := range reached {
			switch {
			case w == "…":
				next[j] = reached[j] || j > 0 && next[j-1]
			case j > 0 && reached[j-1]:
				next[j] = matchLine(w, is[j-1])
			}
			if next[j] {
				last = max(last, j)
			}
		}
		reached = next
	}
	if reached[len(is)] {
		return -1
	}

	return min(last, max(0, len(is)-1))
}

// matchLine compares a line in which "…" stands for any text.
func matchLine(want, is string) bool {
	parts := strings.Split(want, "…")
	if len(parts) == 1 {
		return want == is
	}
	rest, ok := strings.CutPrefix(is, strings.TrimSpace(parts[0]))
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, ok = strings.Cut(rest, strings.TrimSpace(part)); !ok {
			return false
		}
	}

	return strings.HasSuffix(rest, strings.TrimSpace(parts[len(parts)-1]))
}
