// Package chart_test tests the chart: the rendered objects, the rejected values, the installation
// on a real API server, and that the manager needs exactly the permissions of the chart.
package chart_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// tryHelm runs Helm against the control plane.
func tryHelm(t testing.TB, args ...string) (string, error) {
	t.Helper()

	return server.Helm(t.Context(), args...)
}

func helm(t testing.TB, args ...string) string {
	t.Helper()
	out, err := tryHelm(t, args...)
	must(t, err)

	return out
}

// objects reads manifests.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	all, err := cluster.Objects(text)
	must(t, err)

	return all
}

// find returns the object of a kind, nil if there is none. More than one must be distinguished by
// name.
func find(all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, o := range all {
		if o.GetKind() == kind && (name == "" || o.GetName() == name) {
			return o
		}
	}

	return nil
}
