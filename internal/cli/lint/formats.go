package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/linter"
)

// Output formats of lint for tools that show findings next to the lines of a change.
const (
	// formatSARIF is the Static Analysis Results Interchange Format 2.1.0.
	formatSARIF = "sarif"
	// formatGitHub are workflow commands of GitHub Actions.
	formatGitHub = "github"
)

// printAnnotations prints a report for code review tools and is false for other formats.
func printAnnotations(w io.Writer, format string, r linter.Report) (bool, error) {
	switch format {
	case formatSARIF:
		return true, printSARIF(w, r)
	case formatGitHub:
		return true, printGitHub(w, r)
	default:
		return false, nil
	}
}

// printGitHub prints each finding as a workflow command.
func printGitHub(w io.Writer, r linter.Report) error {
	for _, f := range r.Findings {
		properties := "file=" + escapeProperty(f.File)
		if f.Line > 0 {
			properties += fmt.Sprintf(",line=%d", f.Line)
		}

		if _, err := fmt.Fprintf(w, "::%s %s,title=%s::%s\n", f.Severity, properties, escapeProperty(f.Reason), escapeData(render.Sentence(f))); err != nil {
			return err
		}
	}

	return nil
}

// escapeData escapes the message of a workflow command.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// escapeProperty escapes a property of a workflow command.
func escapeProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeData(s))
}

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name  string      `json:"name"`
	Rules []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID string `json:"id"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifMessage    `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

// printSARIF prints the findings as one run of SARIF 2.1.0.
func printSARIF(w io.Writer, r linter.Report) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "arbor lint", Rules: []sarifRule{}}}, Results: []sarifResult{}}

	for _, f := range r.Findings {
		at := sarifPhysical{Artifact: sarifArtifact{fileURI(f.File)}}
		if f.Line > 0 {
			at.Region = &sarifRegion{f.Line}
		}

		run.Results = append(run.Results, sarifResult{
			RuleID: f.Reason, Level: string(f.Severity), Message: sarifMessage{render.Sentence(f)}, Locations: []sarifLocation{{at}},
		})

		if rule := (sarifRule{f.Reason}); !slices.Contains(run.Tool.Driver.Rules, rule) {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
	}

	out, err := json.MarshalIndent(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", formatSARIF, err)
	}

	_, err = w.Write(append(out, '\n'))

	return err
}

// fileURI is a file as a URI: relative for a relative path.
func fileURI(name string) string {
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
		u.Path = "/" + strings.TrimPrefix(u.Path, "/")
	}

	return u.String()
}
