package monitoring_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
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

// A testFile is what promtool tests rules with. Its tests are kept as they are,
// to be written again.
//
//nolint:tagliatelle // the names are promtool's
type testFile struct {
	RuleFiles          []string          `json:"rule_files"`
	EvaluationInterval string            `json:"evaluation_interval"`
	Tests              []json.RawMessage `json:"tests"`
}

// A test is what this package needs to know of one.
//
//nolint:tagliatelle // the names are promtool's
type test struct {
	Alerts []struct {
		Name     string `json:"alertname"`
		Expected []any  `json:"exp_alerts"`
	} `json:"alert_rule_test"`
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
// says which labels are left; that it is true, promtool's tests say, which
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
			t.Errorf("%s fires at once: a moment is no reason to wake somebody", r.Alert)
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

// TestAlertsAreTested finds tests that hold for want of an alert: promtool
// takes one that does not exist for one that does not fire.
func TestAlertsAreTested(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range files(t, "tests/*_test.yaml") {
		var f testFile
		read(t, name, &f)
		for _, raw := range f.Tests {
			for _, a := range decode(t, raw).Alerts {
				fires[a.Name] = fires[a.Name] || len(a.Expected) > 0
				silent[a.Name] = silent[a.Name] || len(a.Expected) == 0
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s is tested to fire: %t, not to fire: %t; want both", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		delete(fires, r.Alert)
	}
	for name := range fires {
		t.Errorf("there are tests of %s, and no such alert", name)
	}
}

func decode(t *testing.T, raw json.RawMessage) test {
	t.Helper()
	var one test
	if err := yaml.Unmarshal(raw, &one); err != nil {
		t.Fatal(err)
	}

	return one
}

// TestTestsCatch breaks every rule in many ways, and wants promtool's tests to
// see each of them. Of the tests, those run that are about the rule; of the
// rules, its group.
func TestTestsCatch(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{} // by what was done to which rule
	var ruleFiles, testFiles []string
	for _, name := range files(t, "rules/*.yaml") {
		var f ruleFile
		read(t, name, &f)
		var tests testFile
		read(t, filepath.Join(monitoring, "tests", strings.TrimSuffix(filepath.Base(name), ".yaml")+"_test.yaml"), &tests)
		for _, g := range f.Groups {
			for i, r := range g.Rules {
				changed := breakages(t, r)
				changed[whole] = r
				for how, c := range changed {
					what := r.name() + " " + how
					want[what] = "FAILED"
					if how == whole {
						want[what] = "SUCCESS"
					}
					g.Rules[i] = c
					ruleFiles = append(ruleFiles, filepath.Join(dir, what+".yaml"))
					testFiles = append(testFiles, filepath.Join(dir, what+"_test.yaml"))
					write(t, ruleFiles[len(ruleFiles)-1], ruleFile{Groups: []ruleGroup{g}})
					write(t, testFiles[len(testFiles)-1], about(r.name(), tests, what+".yaml"))
				}
				g.Rules[i] = r
			}
		}
	}

	// Each is still a rule: it is not refused for its syntax.
	if out, err := promtool(t, append([]string{"check", "rules"}, ruleFiles...)...); err != nil {
		t.Fatalf("promtool check rules: %v\n%s", err, out)
	}
	out, _ := promtool(t, append([]string{"test", "rules"}, testFiles...)...)
	for section := range strings.SplitSeq(out, "Unit Testing:  ") {
		name, result, _ := strings.Cut(section, "\n")
		what := strings.TrimSuffix(filepath.Base(name), "_test.yaml")
		if !strings.Contains(result, want[what]) {
			t.Errorf("%s: want %s, got:\n%s", what, want[what], result)
		}
		delete(want, what)
	}
	for what := range want {
		t.Errorf("%s: not tested", what)
	}
}

// whole is the rule as it is. Its tests must pass, or they would fail for
// something else when it is broken.
const whole = "is as it should be"

// about returns the tests that name a rule.
func about(name string, f testFile, rules string) testFile {
	f.RuleFiles = []string{rules}
	f.Tests = slices.DeleteFunc(slices.Clone(f.Tests), func(raw json.RawMessage) bool {
		return !strings.Contains(string(raw), name)
	})

	return f
}
