// Package monitoring_test checks the folder monitoring: that rules and alerts work, that rules and
// dashboards use only metrics that are served, and that a real Prometheus that scrapes a running
// manager has all of them.
package monitoring_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	root       = "../.."
	monitoring = root + "/monitoring"
)

// promtool runs Prometheus' own tool, and returns what it printed.
func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		path, err = exec.LookPath(root + "/bin/promtool")
	}
	if err != nil {
		t.Fatal("cannot find promtool, which checks and tests the rules: run make setup")
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()

	return string(out), err
}

// files returns those that a pattern names below monitoring. None would be a
// test of nothing.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(monitoring, pattern))
	if err != nil || len(all) == 0 {
		t.Fatalf("cannot find %s: %v", pattern, err)
	}

	return all
}

// read decodes a file of YAML or JSON. Whoever reads a file in Go makes the go
// command run this test again when it has changed: it does not see what promtool
// reads.
func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("cannot read %s: %v", name, err)
	}
}

// write encodes what promtool is to read.
func write(t *testing.T, name string, content any) {
	t.Helper()
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
