package monitoring_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Alerts wait for minutes, and a test has none to waste. A real Prometheus is given
// the rules with every duration in them divided by this, and scrapes sixty times
// as often as usual. Limits stay as they are, also those that are in seconds. That
// the true durations are right is for promtool's tests.
const factor = 60

// scrapes is how often Prometheus looks, and evaluates.
const scrapes = time.Second

// least is what a rate needs to be there whenever it is asked for.
const least = 3 * scrapes

// most is how long an alert waits at most: a scrape that takes too long, as some do on a
// busy machine, has it begin again.
const most = 15 * scrapes

// durations are ranges, with or without the step of a subquery, and offsets.
// Strings are found first, so that nothing in them is taken for one.
var durations = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`|\\[[^\\]]*\\]|\\boffset +-?[0-9a-z]+")

// scaled returns a rule with its durations divided.
func scaled(r rule) (rule, error) {
	var failed error
	divide := func(text string) string {
		d, err := time.ParseDuration(text)
		if err != nil {
			failed = fmt.Errorf("%s: cannot read the duration %q: %w", r.name(), text, err)

			return text
		}
		divided := d / factor
		if divided >= 0 {
			divided = max(divided, least)
		}

		return fmt.Sprintf("%dms", divided.Milliseconds())
	}
	r.Expr = durations.ReplaceAllStringFunc(r.Expr, func(found string) string {
		if offset, ok := strings.CutPrefix(found, "offset"); ok {
			offset = strings.TrimSpace(offset)
			sign := ""
			if rest, negative := strings.CutPrefix(offset, "-"); negative {
				offset, sign = rest, "-"
			}

			return "offset " + sign + divide(offset)
		}
		if found[0] != '[' {
			return found
		}
		parts := strings.Split(strings.Trim(found, "[]"), ":")
		for i, part := range parts {
			if part != "" {
				parts[i] = divide(part)
			}
		}

		return "[" + strings.Join(parts, ":") + "]"
	})
	if r.For != "" {
		r.For = divide(r.For)
	}
	if wait, err := time.ParseDuration(r.For); err == nil && wait > most {
		r.For = fmt.Sprintf("%dms", most.Milliseconds())
	}

	return r, failed
}

func TestScaled(t *testing.T) {
	cases := map[string]struct {
		reason string
		given  rule
		want   rule
		fails  bool
	}{
		"Alert": {
			reason: "How long it waits and how far it looks back, and nothing else.",
			given:  rule{Alert: "A", Expr: `max_over_time(a{b="c"}[5m]) > 60 and job:a:rate5m > 5`, For: "15m"},
			want:   rule{Alert: "A", Expr: `max_over_time(a{b="c"}[5000ms]) > 60 and job:a:rate5m > 5`, For: "15000ms"},
		},
		"Ranges": {
			reason: "Each of them, in all forms.",
			given:  rule{Record: "a", Expr: `rate(a[1h30m]) / rate(a[10m] offset 2h) + max_over_time(rate(a[5m])[1h:5m]) + min_over_time(a[1h:]) + a offset -1h`},
			want:   rule{Record: "a", Expr: `rate(a[90000ms]) / rate(a[10000ms] offset 120000ms) + max_over_time(rate(a[5000ms])[60000ms:5000ms]) + min_over_time(a[60000ms:]) + a offset -60000ms`},
		},
		"Long": {
			reason: "Nobody waits for half a minute without a scrape that fails.",
			given:  rule{Alert: "A", Expr: `a > 0`, For: "30m"},
			want:   rule{Alert: "A", Expr: `a > 0`, For: "15000ms"},
		},
		"Short": {
			reason: "Two samples have to be in it, and one may be late.",
			given:  rule{Alert: "A", Expr: `rate(a[1m]) > 0`, For: "30s"},
			want:   rule{Alert: "A", Expr: `rate(a[3000ms]) > 0`, For: "3000ms"},
		},
		"Strings": {
			reason: "What stands in a string is no duration.",
			given:  rule{Record: "a", Expr: `rate(a{b="[5m]", c='offset 5m', d=~"\"[5m]"}[5m])`},
			want:   rule{Record: "a", Expr: `rate(a{b="[5m]", c='offset 5m', d=~"\"[5m]"}[5000ms])`},
		},
		"Instant": {
			reason: "What has no duration stays as it is.",
			given:  rule{Record: "a", Expr: `label_replace(a, "b", "$1", "c", "(.*)")`},
			want:   rule{Record: "a", Expr: `label_replace(a, "b", "$1", "c", "(.*)")`},
		},
		"Unreadable": {
			reason: "Rather than to test something else, it is said that it cannot be read.",
			given:  rule{Record: "a", Expr: `rate(a[1w])`},
			want:   rule{Record: "a", Expr: `rate(a[1w])`},
			fails:  true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := scaled(tc.given)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%s\nscaled(...): error %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}
