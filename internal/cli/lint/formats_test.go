package lint

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/linter"
	"github.com/arbor-control/arbor/internal/show"
)

func TestLintGitHub(t *testing.T) {
	r := clitest.Run(t, New, clitest.PodGroupHead+"spec: {subGroups: [{name: A}]}", "-f", "-", "-o", "github")
	want := clitest.Result{
		Code: command.ExitFound,
		Out:  `::error file=<stdin>,line=4,title=SubGroupNameNotLowercase::PodGroup ns/a: spec.subGroups[0].name: subgroup name "A" must be lowercase (rename it to "a")` + "\n",
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	report := linter.Report{Findings: []show.Located{{File: "a,b:c%.yaml", Finding: show.Finding{Severity: show.SeverityWarning, Reason: "R", Message: "50%\r\nmore: x, y"}}}}

	var b bytes.Buffer
	if err := printGitHub(&b, report); err != nil {
		t.Fatal(err)
	}

	if want := "::warning file=a%2Cb%3Ac%25.yaml,title=R::50%25%0D%0Amore: x, y\n"; b.String() != want {
		t.Errorf("got %q, want %q: a finding must not end its command", b.String(), want)
	}
}

func TestLintSARIF(t *testing.T) {
	result := func(uri string, region map[string]any) map[string]any {
		at := map[string]any{"artifactLocation": map[string]any{"uri": uri}}
		if region != nil {
			at["region"] = region
		}

		return map[string]any{
			"ruleId": "R", "level": "error", "message": map[string]any{"text": "f: m (x)"},
			"locations": []any{map[string]any{"physicalLocation": at}},
		}
	}
	found := show.Finding{Severity: show.SeverityError, Reason: "R", Field: "f", Message: "m", Fix: "x"}
	report := linter.Report{Findings: []show.Located{{File: "deploy/a b.yaml", Line: 7, Finding: found}, {File: "/abs.yaml", Finding: found}}}
	want := map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []any{map[string]any{
			"tool":    map[string]any{"driver": map[string]any{"name": "arbor lint", "rules": []any{map[string]any{"id": "R"}}}},
			"results": []any{result("deploy/a%20b.yaml", map[string]any{"startLine": 7.0}), result("file:///abs.yaml", nil)},
		}},
	}

	var b bytes.Buffer
	if err := printSARIF(&b, report); err != nil {
		t.Fatal(err)
	}

	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	if r := clitest.Run(t, New, clitest.PodGroupHead, "-f", "-", "-o", "sarif"); r.Code != 0 || r.ErrOut != "" || !json.Valid([]byte(r.Out)) || !strings.Contains(r.Out, `"results": []`) {
		t.Errorf("a run without findings: %+v", r)
	}
}
