package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An event is one line of `go test -json`: see `go doc test2json`. Its keys begin with capitals,
// which package json reads too.
type event struct {
	Action     string  `json:"action"`
	Package    string  `json:"package"`
	ImportPath string  `json:"importPath"` // instead of Package, for the output of builds
	Test       string  `json:"test"`
	Output     string  `json:"output"`
	Elapsed    float64 `json:"elapsed"`
}

// A test is a test of a package, or the package itself if its name is empty.
type test struct{ pkg, name string }

const (
	// shown is how many lines of a failed test the summary has, and width how long they are.
	shown, width = 12, 400
	// listed is how many packages and tests the summary has.
	listed = 15
)

// message matches what a test reports with t.Error and t.Log, and how a process ends.
var message = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: |^panic: |^fatal error: |^WARNING: DATA RACE`)

// A report is what is known of a run.
type report struct {
	out    io.Writer
	output map[test]*strings.Builder // of tests that have not ended, and of packages
	failed []test
	lines  map[test][]string // the messages of failed tests
	took   map[test]time.Duration
	open   map[string]bool // packages that have begun and not ended
}

func newReport(out io.Writer) *report {
	return &report{
		out: out, output: map[test]*strings.Builder{}, lines: map[test][]string{},
		took: map[test]time.Duration{}, open: map[string]bool{},
	}
}

func (r *report) add(e *event) {
	t := test{pkg: e.Package, name: e.Test}
	switch e.Action {
	case "start":
		r.open[e.Package] = true
	case "output":
		_, _ = r.buffer(t).WriteString(e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.fail(test{pkg: e.ImportPath})
	case "pass", "skip":
		r.end(t, e, false)
	case "fail":
		r.end(t, e, true)
	}
}

func (r *report) buffer(t test) *strings.Builder {
	b := r.output[t]
	if b == nil {
		b = &strings.Builder{}
		r.output[t] = b
	}

	return b
}

// end prints the output of a test that failed, and the line of a package.
func (r *report) end(t test, e *event, failed bool) {
	text := r.buffer(t).String()
	delete(r.output, t)
	switch {
	case failed:
		fmt.Fprint(r.out, text)
		r.lines[t] = messages(text)
		r.fail(t)
	case t.name == "":
		fmt.Fprint(r.out, lastLine(text))
	}
	r.took[t] = time.Duration(e.Elapsed * float64(time.Second))
	if t.name == "" {
		delete(r.open, t.pkg)
	}
}

func (r *report) fail(t test) { r.failed = append(r.failed, t) }

// passed reports whether there were tests, and all passed.
func (r *report) passed() bool { return len(r.took) > 0 && len(r.failed) == 0 && len(r.open) == 0 }

// summarize prints the slowest packages and tests, then the failures.
func (r *report) summarize() {
	packages := r.slowest(func(t test) bool { return t.name == "" })
	var sum time.Duration
	for _, t := range packages {
		sum += r.took[t]
	}
	fmt.Fprintf(r.out, "\n%d packages, %.1f minutes of tests. The slowest, in minutes:\n", len(packages), sum.Minutes())
	r.list(packages)
	tests := r.slowest(func(t test) bool { return t.name != "" && !strings.Contains(t.name, "/") })
	fmt.Fprintf(r.out, "The slowest of %d tests, in minutes:\n", len(tests))
	r.list(tests)
	for pkg := range r.open {
		fmt.Fprintf(r.out, "Package %s did not end.\n", pkg)
	}
	if len(r.failed) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nFailed:")
	for _, t := range r.failed {
		r.summarizeFailure(t)
	}
}

// slowest returns what matches, the slowest first.
func (r *report) slowest(matches func(test) bool) []test {
	var found []test
	for t := range r.took {
		if matches(t) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b test) int {
		return cmp.Or(cmp.Compare(r.took[b], r.took[a]), strings.Compare(a.pkg, b.pkg), strings.Compare(a.name, b.name))
	})

	return found
}

func (r *report) list(slowest []test) {
	for _, t := range slowest[:min(listed, len(slowest))] {
		fmt.Fprintf(r.out, "  %5.1f  %s\n", r.took[t].Minutes(), strings.TrimSpace(t.pkg+" "+t.name))
	}
}

func (r *report) summarizeFailure(t test) {
	lines := r.lines[t]
	if t.name == "" && len(lines) == 0 && r.hasFailedTest(t.pkg) {
		return // its tests are listed
	}
	fmt.Fprintf(r.out, "  %s %s\n", t.pkg, t.name)
	for _, line := range lines {
		fmt.Fprintf(r.out, "      %s\n", line)
	}
}

func (r *report) hasFailedTest(pkg string) bool {
	return slices.ContainsFunc(r.failed, func(t test) bool { return t.pkg == pkg && t.name != "" })
}

// messages returns the first lines of an output that tell why a test failed: a message, and what
// is indented below it.
func messages(output string) []string {
	var found []string
	within := false
	for line := range strings.Lines(output) {
		within = message.MatchString(line) || within && strings.HasPrefix(line, "        ")
		if !within {
			continue
		}
		line = strings.TrimSpace(line)
		if found = append(found, line[:min(width, len(line))]); len(found) == shown {
			break
		}
	}

	return found
}

// lastLine returns the line of a package that passed: ok, its time and its coverage.
func lastLine(output string) string {
	lines := slices.Collect(strings.Lines(output))
	if len(lines) == 0 {
		return ""
	}

	return lines[len(lines)-1]
}
