package monitoring_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page returns a document.
func page(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

// TestAlertsAreExplained finds alerts that wake somebody and do not say what to do,
// and sections about alerts that are no more.
func TestAlertsAreExplained(t *testing.T) {
	text := page(t, "monitoring.md")
	there := map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		there[r.Alert] = true
		for _, want := range []string{"\n### " + r.Alert + "\n", "[`" + r.Alert + "`](#" + strings.ToLower(r.Alert) + ") | " + r.Labels["severity"] + " |"} {
			if !strings.Contains(text, want) {
				t.Errorf("docs/monitoring.md does not have %q", want)
			}
		}
	}
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		if !there[m[1]] {
			t.Errorf("docs/monitoring.md lists the alert %s, and there is none", m[1])
		}
	}
}

// listed is an alert in the table.
var listed = regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]")

// TestMetricsAreExplained finds metrics of ours that no document names.
func TestMetricsAreExplained(t *testing.T) {
	text := page(t, "monitoring.md") + page(t, "podgroups.md") + page(t, "fields.md")
	for name := range own(t) {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("no document names %s", name)
		}
	}
	for _, r := range rules(t) {
		if r.Record != "" && !strings.Contains(text, "`"+r.Record+"`") {
			t.Errorf("no document names %s", r.Record)
		}
	}
}
