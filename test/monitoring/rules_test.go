package monitoring_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A ruleFile is what Prometheus loads.
type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// A rule records, or alerts.
type rule struct {
	Record      string            `json:"record,omitempty"`
	Alert       string            `json:"alert,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func (r rule) name() string { return r.Record + r.Alert }

// A testFile is what this package needs to know of promtool's tests.
//
//nolint:tagliatelle // the names are promtool's
type testFile struct {
	Tests []struct {
		Alerts []struct {
			Name     string `json:"alertname"`
			Expected []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
		Queries []struct {
			Expr     string `json:"expr"`
			Expected []any  `json:"exp_samples"`
		} `json:"promql_expr_test"`
	} `json:"tests"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, name := range files(t, "rules/*.yaml") {
		var f ruleFile
		read(t, name, &f)
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}

	return all
}

func TestRules(t *testing.T) {
	for what, pattern := range map[string]string{"check": "rules/*.yaml", "test": "tests/*_test.yaml"} {
		if out, err := promtool(t, append([]string{what, "rules"}, files(t, pattern)...)...); err != nil {
			t.Errorf("promtool %s rules: %v\n%s", what, err, out)
		}
	}
}

// recorded is level:metric:operations, by which everybody sees what a series
// was made from.
var recorded = regexp.MustCompile(`^([a-z]+(?:_[a-z]+)*):[a-z0-9_]+:[a-z0-9_]+$`)

// known returns what is served, and what rules make of it. The level of a name
// reports which labels are left; that it is true, promtool's tests say, which
// compare labels too.
func known(t *testing.T) series {
	t.Helper()
	all := served(t)
	for _, r := range rules(t) {
		if r.Record == "" {
			continue
		}
		m := recorded.FindStringSubmatch(r.Record)
		if m == nil {
			t.Errorf("%s is not named level:metric:operations", r.Record)

			continue
		}
		all[r.Record] = slices.DeleteFunc(strings.Split(m[1], "_"), func(l string) bool { return slices.Contains(scraped, l) })
	}

	return all
}

func TestRulesSelectWhatThereIs(t *testing.T) {
	all := known(t)
	for _, r := range rules(t) {
		for _, p := range parse(r.Expr).problems(all) {
			t.Errorf("%s: %s", r.name(), p)
		}
	}
}

func TestAlertsTell(t *testing.T) {
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if r.For == "" {
			t.Errorf("%s fires at once: a short problem must not alert", r.Alert)
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s has the severity %q, want warning (in working hours) or critical (now)", r.Alert, s)
		}
		for _, name := range []string{"summary", "description", "runbook_url"} {
			if r.Annotations[name] == "" {
				t.Errorf("%s has no %s", r.Alert, name)
			}
		}
	}
}

// TestRulesAreTested lists rules whose break promtool's tests would not see: an alert must be
// expected to fire once and not to fire once, since promtool takes one that does not exist for one
// that does not fire, and a recording rule must be expected to have a value.
func TestRulesAreTested(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	var valued []string // the queries that have a value
	for _, name := range files(t, "tests/*_test.yaml") {
		var f testFile
		read(t, name, &f)
		for _, one := range f.Tests {
			for _, a := range one.Alerts {
				fires[a.Name] = fires[a.Name] || len(a.Expected) > 0
				silent[a.Name] = silent[a.Name] || len(a.Expected) == 0
			}
			for _, q := range one.Queries {
				if len(q.Expected) > 0 {
					valued = append(valued, q.Expr)
				}
			}
		}
	}
	for _, r := range rules(t) {
		switch {
		case r.Alert != "" && (!fires[r.Alert] || !silent[r.Alert]):
			t.Errorf("%s is tested to fire: %t, not to fire: %t; want both", r.Alert, fires[r.Alert], silent[r.Alert])
		case r.Record != "" && !slices.ContainsFunc(valued, func(query string) bool { return strings.Contains(query, r.Record) }):
			t.Errorf("%s has no promql_expr_test that expects a value of it", r.Record)
		}
		delete(fires, r.Alert)
	}
	for name := range fires {
		t.Errorf("there are tests of %s, and no such alert", name)
	}
}
