package monitoring_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A query is what can be told from the words of a PromQL expression. promtool reports whether it is
// one; it does not return what is selected.
type query struct {
	selected []selector
	// grouped are the labels that it is aggregated by or matched on.
	grouped []string
	// made are labels that come from label_replace and label_join.
	made []string
}

// A selector is a metric and the labels by which series of it are chosen.
type selector struct {
	metric string
	labels []string
}

var (
	token = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|[a-zA-Z_:][\\w:]*|[0-9][\\w.]*|\\S")
	word  = regexp.MustCompile(`^[a-zA-Z_:]`)

	// grouping words have labels in their parentheses, the other ones have none.
	grouping = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	others   = []string{"and", "or", "unless", "bool", "offset"}
)

// parse reads an expression that promtool takes for one.
func parse(expr string) query {
	var q query
	words := token.FindAllString(expr, -1)
	next := func(i int) string {
		if i+1 < len(words) {
			return words[i+1]
		}

		return ""
	}
	for i := 0; i < len(words); i++ {
		switch w := words[i]; {
		case slices.Contains(grouping, w) && next(i) == "(":
			inside := enclosed(words[i+1:], ")")
			q.grouped = append(q.grouped, names(inside)...)
			i += 1 + len(inside)
		case w == "{" || word.MatchString(w) && !isFunction(next(i)) && !slices.Contains(slices.Concat(grouping, others), w):
			s := selector{metric: w}
			if w == "{" {
				s.metric, i = "", i-1
			}
			if next(i) == "{" {
				inside := enclosed(words[i+1:], "}")
				s.labels = names(inside)
				i += 1 + len(inside)
			}
			q.selected = append(q.selected, s)
		case w == "label_replace" || w == "label_join":
			q.made = append(q.made, firstString(words[i+1:]))
		}
	}

	return q
}

// isFunction reports whether the word before this one is a function or an
// aggregation.
func isFunction(next string) bool { return next == "(" || next == "by" || next == "without" }

// enclosed returns what stands between the first word and the one that closes it.
func enclosed(words []string, end string) []string {
	return words[1:max(1, slices.Index(words, end))]
}

// names leaves out commas, operators and values.
func names(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !word.MatchString(w) })
}

// firstString returns the first string that is an argument of the call itself:
// the label that it makes.
func firstString(words []string) string {
	depth := 0
	for _, w := range words {
		switch {
		case strings.ContainsAny(w[:1], "({["):
			depth++
		case strings.ContainsAny(w[:1], ")}]"):
			depth--
		case depth == 1 && w[0] == '"':
			return strings.Trim(w, `"`)
		}
	}

	return ""
}

// problems returns a message for everything that the query selects and that is not served.
func (q query) problems(known series) []string {
	var found []string
	reachable := slices.Clone(q.made)
	for _, s := range q.selected {
		labels, ok := known.labels(s.metric)
		if !ok {
			found = append(found, fmt.Sprintf("there is no metric %q", s.metric))

			continue
		}
		reachable = append(reachable, labels...)
		for _, l := range s.labels {
			if !slices.Contains(labels, l) {
				found = append(found, fmt.Sprintf("%s has no label %q, only %q", s.metric, l, labels))
			}
		}
	}
	for _, l := range q.grouped {
		if !slices.Contains(reachable, l) {
			found = append(found, fmt.Sprintf("nothing here has the label %q", l))
		}
	}

	return found
}

func TestProblems(t *testing.T) {
	known := series{
		"subnetpool_parent_requeue_total":              {"event_type"},
		"subnetpool_parent_reconcile_duration_seconds": {"result"},
		"subnetpool_parent_reconcile_inflight":         nil,
		"subnetclaims_waiting":                         {"ns", "pool"},
	}
	cases := map[string]struct {
		reason string
		expr   string
		want   []string
	}{
		"Right": {
			reason: "What is there may be selected and grouped by.",
			expr:   `sum by (event_type) (rate(subnetpool_parent_requeue_total{event_type!="delete", job="a"}[5m])) > 0`,
		},
		"Histogram": {
			reason: "A histogram is served as buckets, which have a bound, a sum and a count.",
			expr:   `histogram_quantile(0.95, sum(rate(subnetpool_parent_reconcile_duration_seconds_bucket[5m])) by (le))`,
		},
		"BareHistogram": {
			reason: "There is no series of a histogram's own name.",
			expr:   `subnetpool_parent_reconcile_duration_seconds`,
			want:   []string{`there is no metric "subnetpool_parent_reconcile_duration_seconds"`},
		},
		"NoHistogram": {
			reason: "A counter has no buckets.",
			expr:   `subnetpool_parent_requeue_total_bucket`,
			want:   []string{`there is no metric "subnetpool_parent_requeue_total_bucket"`},
		},
		"Bound": {
			reason: "Only buckets have a bound.",
			expr:   `subnetpool_parent_reconcile_duration_seconds_count{le="1"}`,
			want:   []string{`subnetpool_parent_reconcile_duration_seconds_count has no label "le", only ["result" "job" "instance"]`},
		},
		"NeverFires": {
			reason: "The alert of old, which looked for results where there are none.",
			expr:   `rate(subnetpool_parent_requeue_total{result="error"}[5m]) > rate(subnetpool_parent_requeue_total{result="success"}[5m]) * 0.05`,
			want: []string{
				`subnetpool_parent_requeue_total has no label "result", only ["event_type" "job" "instance"]`,
				`subnetpool_parent_requeue_total has no label "result", only ["event_type" "job" "instance"]`,
			},
		},
		"Unknown": {
			reason: "Names are wrong on either side of an operator, alone and in functions.",
			expr:   `nothing and on (job) max_over_time(nowhere[5m]) offset 1h / (nobody > bool 0)`,
			want: []string{
				`there is no metric "nothing"`, `there is no metric "nowhere"`, `there is no metric "nobody"`,
				`nothing here has the label "job"`,
			},
		},
		"Grouped": {
			reason: "Who groups by a label that nothing has gets one group.",
			expr:   `sum by (ns, name) (subnetclaims_waiting) / on (pool, cluster) group_left (node) subnetpool_parent_reconcile_inflight`,
			want: []string{
				`nothing here has the label "name"`, `nothing here has the label "cluster"`, `nothing here has the label "node"`,
			},
		},
		"Made": {
			reason: "A label may be made on the way.",
			expr:   `sum by (name) (label_replace(subnetclaims_waiting{ns="a"}, "name", "$1", "pool", "(.*)"))`,
		},
		"Words": {
			reason: "What stands in a string is neither a metric nor a label.",
			expr:   `subnetclaims_waiting{pool=~"sum by (nothing) \"nowhere\""} == 1.5e3`,
		},
		"Nameless": {
			reason: "A selector without a name selects from everything.",
			expr:   `{ns="a"}`,
			want:   []string{`there is no metric ""`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parse(tc.expr).problems(known)); diff != "" {
				t.Errorf("%s\nproblems(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
