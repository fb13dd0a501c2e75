package monitoring_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
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

// TestAlertsAreExplained finds alerts without instructions, and sections about alerts that are no
// more.
func TestAlertsAreExplained(t *testing.T) {
	text := page(t, "tasks/monitoring.md")
	there := map[string]bool{}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		there[r.Alert] = true
		for _, want := range []string{"\n### " + r.Alert + "\n", "[`" + r.Alert + "`](#" + strings.ToLower(r.Alert) + ") | " + r.Labels["severity"] + " |"} {
			if !strings.Contains(text, want) {
				t.Errorf("docs/tasks/monitoring.md does not have %q", want)
			}
		}
	}
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		if !there[m[1]] {
			t.Errorf("docs/tasks/monitoring.md lists the alert %s, and there is none", m[1])
		}
	}
}

// runbooks is where alerts point to: the documents of the project.
const runbooks = "https://github.com/arbor-control/arbor/blob/main/docs/"

// heading is a heading of a document.
var heading = regexp.MustCompile("(?m)^#+ (.+)$")

// TestRunbooks follows the link of every alert: the page and the section have to exist.
func TestRunbooks(t *testing.T) {
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		path, ours := strings.CutPrefix(r.Annotations["runbook_url"], runbooks)
		if !ours {
			t.Errorf("%s has the runbook_url %q, want one that begins with %s", r.Alert, r.Annotations["runbook_url"], runbooks)

			continue
		}
		name, anchor, _ := strings.Cut(path, "#")
		if !slices.ContainsFunc(heading.FindAllStringSubmatch(page(t, name), -1), func(m []string) bool { return anchorOf(m[1]) == anchor }) {
			t.Errorf("%s points to %s, and docs/%s has no section #%s", r.Alert, path, name, anchor)
		}
		if anchor != anchorOf(r.Alert) {
			t.Errorf("%s points to the section #%s, want its own", r.Alert, anchor)
		}
	}
}

// anchorOf is what forges make of a heading.
func anchorOf(heading string) string {
	kept := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}

		return -1
	}, heading)

	return strings.ReplaceAll(kept, " ", "-")
}

// listed is an alert in the table.
var listed = regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]")

// TestMetricsAreExplained finds metrics of ours that no document names.
func TestMetricsAreExplained(t *testing.T) {
	text := page(t, "tasks/monitoring.md") + page(t, "reference/podgroups.md") + page(t, "concepts/fields.md")
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
