package verdict_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/decide/verdict"
)

func TestWarningStrings(t *testing.T) {
	many := func(n int) []verdict.Warning {
		all := make([]verdict.Warning, n)
		for i := range all {
			all[i] = verdict.Warning{Field: "spec", Message: strconv.Itoa(i)}
		}

		return all
	}
	cases := map[string]struct {
		reason string
		given  []verdict.Warning
		count  int
		last   string
	}{
		"None":   {reason: "nothing to say"},
		"Ten":    {reason: "ten fit", given: many(10), count: 10, last: "spec: 9"},
		"Eleven": {reason: "eleven do not", given: many(11), count: 11, last: "and 1 more"},
		"Many":   {reason: "the rest is only counted", given: many(500), count: 11, last: "and 490 more"},
		"Exact": {
			reason: "256 bytes fit", count: 1,
			given: []verdict.Warning{{Field: "f", Message: strings.Repeat("x", 253)}},
			last:  "f: " + strings.Repeat("x", 253),
		},
		"Long": {
			reason: "257 bytes do not", count: 1,
			given: []verdict.Warning{{Field: "f", Message: strings.Repeat("x", 254)}},
			last:  "f: " + strings.Repeat("x", 250) + "...",
		},
		"LongRunes": {
			reason: "a character is never cut in two", count: 1,
			given: []verdict.Warning{{Field: "f", Message: strings.Repeat("世", 100)}},
			last:  "f: " + strings.Repeat("世", 83) + "...",
		},
		"LongRunesOdd": {
			reason: "wherever the cut falls", count: 1,
			given: []verdict.Warning{{Field: "fo", Message: strings.Repeat("世", 100)}},
			last:  "fo: " + strings.Repeat("世", 83) + "...",
		},
		"Control": {
			reason: "an API server drops what has control characters", count: 1,
			given: []verdict.Warning{{Field: "f", Message: "a\nb\x00c\xffd"}},
			last:  "f: a b c\uFFFDd",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := verdict.Verdict{Warnings: tc.given}.WarningStrings()
			if len(got) != tc.count {
				t.Fatalf("%s\nWarningStrings() has %d, want %d", tc.reason, len(got), tc.count)
			}
			if tc.count == 0 {
				return
			}
			last := got[len(got)-1]
			if diff := cmp.Diff(tc.last, last); diff != "" {
				t.Errorf("%s\nWarningStrings(): -want, +got:\n%s", tc.reason, diff)
			}
			if len(last) > 256 || !utf8.ValidString(last) {
				t.Errorf("%s\nWarningStrings() has one of %d bytes, want at most 256 of UTF-8", tc.reason, len(last))
			}
		})
	}
}
