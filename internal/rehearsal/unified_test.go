package rehearsal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// text has one line for each letter.
func text(letters string) []string {
	var all []string
	for _, r := range letters {
		all = append(all, string(r)+"\n")
	}

	return all
}

func TestUnifiedDiff(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   string
		want   string
	}{
		"Same":     {"Nothing is shown.", "abc", "abc", ""},
		"Empty":    {"Neither has a line.", "", "", ""},
		"Created":  {"All lines are new.", "", "ab", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"Deleted":  {"All lines are removed.", "a", "", "@@ -1 +0,0 @@\n-a\n"},
		"Changed":  {"A line is another, with three lines around it.", "abcdefghi", "abcdXfghi", "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+X\n f\n g\n h\n"},
		"Added":    {"A line comes in between.", "abc", "aXbc", "@@ -1,3 +1,4 @@\n a\n+X\n b\n c\n"},
		"Together": {"Changes with six lines between them are one hunk.", "XabcdefY", "abcdef", "@@ -1,8 +1,6 @@\n-X\n a\n b\n c\n d\n e\n f\n-Y\n"},
		"Apart":    {"With seven they are two.", "XabcdefgY", "abcdefg", "@@ -1,4 +1,3 @@\n-X\n a\n b\n c\n@@ -6,4 +5,3 @@\n e\n f\n g\n-Y\n"},
		"Moved":    {"What is moved is removed and added.", "abc", "bca", "@@ -1,3 +1,3 @@\n-a\n b\n c\n+a\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want != "" {
				want = "--- from\n+++ to\n" + want
			}
			if diff := cmp.Diff(want, unifiedDiff("from", "to", text(tc.a), text(tc.b), 3)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Whatever the texts are, the edits lead from one to the other, keep as many lines as the
// longest common subsequence has, and hunks have the lines that they say.
func TestUnifiedDiffRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		a, b := make([]string, random.IntN(20)), make([]string, random.IntN(20))
		for _, side := range [][]string{a, b} {
			for j := range side {
				side[j] = fmt.Sprintf("%d\n", random.IntN(5))
			}
		}
		edits := editsOf(a, b)
		var before, after []string
		kept := 0
		for _, e := range edits {
			if e.kind != '+' {
				before = append(before, e.line)
			}
			if e.kind != '-' {
				after = append(after, e.line)
			}
			if e.kind == ' ' {
				kept++
			}
		}
		if !slices.Equal(a, before) || !slices.Equal(b, after) || kept != common(a, b) {
			t.Fatalf("round %d: %q to %q, with %d lines in common, became %q", i, a, b, common(a, b), edits)
		}
		if got := applied(t, a, unifiedDiff("a", "b", a, b, random.IntN(4))); !slices.Equal(got, b) {
			t.Fatalf("round %d: %q to %q: the difference leads to %q", i, a, b, got)
		}
	}
}

// common is the length of the longest common subsequence, by the obvious way.
func common(a, b []string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			}
		}
	}

	return table[len(a)][len(b)]
}

// applied does what patch does.
func applied(t *testing.T, a []string, diff string) []string {
	t.Helper()
	var out []string
	at := 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		case strings.HasPrefix(line, "@@"):
			var begin int
			if _, err := fmt.Sscanf(line, "@@ -%d", &begin); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Fields(line)[1]; !strings.HasSuffix(lines, ",0") {
				begin--
			}
			out = append(out, a[at:begin]...)
			at = begin
		case line[0] == '+':
			out = append(out, line[1:])
		case a[at] != line[1:]:
			t.Fatalf("the difference has %q, where the text has %q", line, a[at])
		default:
			if line[0] == ' ' {
				out = append(out, a[at])
			}
			at++
		}
	}

	return append(out, a[at:]...)
}

// Texts that differ in everything are replaced, and do not take minutes.
func TestUnifiedDiffLarge(t *testing.T) {
	a, b := make([]string, 20000), make([]string, 20000)
	for i := range a {
		a[i], b[i] = fmt.Sprintf("a%d\n", i), fmt.Sprintf("b%d\n", i)
	}
	if got := unifiedDiff("a", "b", a, b, 3); strings.Count(got, "\n") != 40003 || !strings.Contains(got, "@@ -1,20000 +1,20000 @@\n-a0\n") {
		t.Errorf("it has %d lines", strings.Count(got, "\n"))
	}
}
