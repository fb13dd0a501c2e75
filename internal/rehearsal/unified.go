package rehearsal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxEdits is how many lines may differ before the rest is shown as replaced as a whole: the
// time and memory that the shortest difference takes grow with the square.
const maxEdits = 2000

// An edit is a line of a difference: kept (' '), removed ('-') or added ('+').
type edit struct {
	kind byte
	line string
}

// unifiedDiff compares lines, each with its end, and returns the difference in the unified
// format with some lines of context. It is empty if there is none.
func unifiedDiff(from, to string, a, b []string, context int) string {
	if slices.Equal(a, b) {
		return ""
	}

	var out strings.Builder

	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)

	edits := editsOf(a, b)
	for begin := 0; begin < len(edits); {
		first := begin + slices.IndexFunc(edits[begin:], changes)
		if first < begin {
			break
		}

		last := lastOfHunk(edits, first, context)
		begin = max(begin, first-context)
		end := min(last+1+context, len(edits))
		writeHunk(&out, edits, begin, end)
		begin = end
	}

	return out.String()
}

func changes(e edit) bool { return e.kind != ' ' }

// lastOfHunk returns the last change of the hunk that begins with a change: between two hunks
// there is at least one line that is context of neither.
func lastOfHunk(edits []edit, first, context int) int {
	last := first
	for {
		next := slices.IndexFunc(edits[last+1:], changes)
		if next < 0 || next > 2*context {
			return last
		}

		last += 1 + next
	}
}

func writeHunk(out *strings.Builder, edits []edit, begin, end int) {
	before, after := counts(edits[:begin])
	removed, added := counts(edits[begin:end])

	fmt.Fprintf(out, "@@ -%s +%s @@\n", hunkRange(before, removed), hunkRange(after, added))

	for _, e := range edits[begin:end] {
		out.WriteByte(e.kind)
		out.WriteString(e.line)
	}
}

// counts returns how many lines of both texts edits stand for.
func counts(edits []edit) (before, after int) {
	for _, e := range edits {
		if e.kind != '+' {
			before++
		}

		if e.kind != '-' {
			after++
		}
	}

	return before, after
}

// hunkRange is that of some lines after others. An empty one is named by the line before it.
func hunkRange(skipped, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", skipped)
	case 1:
		return strconv.Itoa(skipped + 1)
	default:
		return fmt.Sprintf("%d,%d", skipped+1, lines)
	}
}

// editsOf turns a into b. What both begin and end with is not compared further.
func editsOf(a, b []string) []edit {
	prefix := 0
	for prefix < len(a) && prefix < len(b) && a[prefix] == b[prefix] {
		prefix++
	}

	suffix := 0
	for suffix < len(a)-prefix && suffix < len(b)-prefix && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}

	all := editLines(' ', a[:prefix])
	all = append(all, shortest(a[prefix:len(a)-suffix], b[prefix:len(b)-suffix])...)

	return append(all, editLines(' ', a[len(a)-suffix:])...)
}

func editLines(kind byte, text []string) []edit {
	all := make([]edit, 0, len(text))
	for _, line := range text {
		all = append(all, edit{kind, line})
	}

	return all
}

// A trace has, for each number of edits d, how far a can be followed on the diagonals -d, -d+2
// to d. A diagonal is the lines of a minus those of b that were passed.
type trace [][]int

func (t trace) at(d, k int) int { return t[d][(k+d)/2] }

// origin returns the diagonal from which the d-th edit leads to the diagonal k, and how far a
// was followed there: one more line of a from the left, one more of b from the right.
func (t trace) origin(d, k int) (from, x int) {
	if k == -d || k != d && t.at(d-1, k-1) < t.at(d-1, k+1) {
		return k + 1, t.at(d-1, k+1)
	}

	return k - 1, t.at(d-1, k-1)
}

// shortest finds the fewest edits, by the greedy algorithm of Myers (1986). If there are more
// than maxEdits, everything is replaced.
func shortest(a, b []string) []edit {
	var t trace

	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		t = append(t, make([]int, d+1))

		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				var from int

				from, x = t.origin(d, k)
				x += (k - from + 1) / 2 // one line of a, or none
			}

			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}

			t[d][(k+d)/2] = x

			if x >= len(a) && x-k >= len(b) {
				return t.backwards(a, b)
			}
		}
	}

	return append(editLines('-', a), editLines('+', b)...)
}

// backwards follows a trace from the end of both texts to their beginning.
func (t trace) backwards(a, b []string) []edit {
	var all []edit

	x, y := len(a), len(b)
	for d := range slices.Backward(t) {
		// Where the d-th edit begins. Behind it, both texts have the same lines.
		px, py := 0, 0

		if d > 0 {
			from, at := t.origin(d, x-y)
			px, py = at, at-from
		}

		for x > px && y > py {
			x, y = x-1, y-1
			all = append(all, edit{' ', a[x]})
		}

		switch {
		case d == 0:
		case x > px:
			x--

			all = append(all, edit{'-', a[x]})
		default:
			y--

			all = append(all, edit{'+', b[y]})
		}
	}

	slices.Reverse(all)

	return all
}
