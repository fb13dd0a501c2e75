// Package chart_test shows the chart: what it renders, what it refuses, that a real
// API server takes it, and that the manager works with exactly the rights that it
// gives.
package chart_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/arbor-control/arbor/test/cluster"
)

var (
	server *cluster.Up
	// auditLog is what the API server writes about who asks it for what.
	auditLog string
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "arbor-chart-")
	if err != nil {
		panic(err) // without a folder there is nothing to test with
	}
	auditLog = filepath.Join(dir, "audit.log")
	code := cluster.Main(m, &server, "--bare", "--nodes=2", "--audit-log="+auditLog)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chart is the folder of the chart.
func chart() string { return filepath.Join(cluster.Root(), "charts", "arbor") }

// tryHelm runs Helm against the control plane.
func tryHelm(t testing.TB, args ...string) (string, error) {
	t.Helper()
	binary, err := cluster.Binary("helm", "HELM")
	must(t, err)
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+server.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}

	return out.String(), nil
}

func helm(t testing.TB, args ...string) string {
	t.Helper()
	out, err := tryHelm(t, args...)
	must(t, err)

	return out
}

// set makes flags of values, each as key=value.
func set(values ...string) []string {
	var args []string
	for _, v := range values {
		args = append(args, "--set", v)
	}

	return args
}

// objects reads manifests.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// find returns the object of a kind, nil if there is none. More than one must be
// told apart by name.
func find(all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, o := range all {
		if o.GetKind() == kind && (name == "" || o.GetName() == name) {
			return o
		}
	}

	return nil
}
