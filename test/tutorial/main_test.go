// Package tutorial_test does what docs/start/delivery-tutorial.md says, on a real control
// plane with nodes, and then what nobody should do: it kills managers while
// everything changes.
package tutorial_test

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=2"))
}

// both are the flags of a manager that runs both parts.
var both = []string{"--controllers=synthesis,delivery", "--webhooks=false", "--local-synthesizers"}

// A stage is a namespace with compositions in it.
type stage struct {
	client.Client
	*testing.T

	namespace string
}

// kubectl runs a command that must succeed.
func (s *stage) kubectl(args ...string) string {
	s.Helper()
	out, errs, code := server.Arbor(s, append([]string{"kubectl"}, args...)...)
	if code != 0 {
		s.Fatalf("kubectl %v: %s%s", args, out, errs)
	}

	return out
}

// composition reads one; what is wrong with that is no reason to stop.
func (s *stage) composition(name string) (*enov1.Composition, error) {
	c := &enov1.Composition{}
	err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, c)

	return c, err
}

// example is the path of a manifest of the tutorial.
func example(name string) string {
	return filepath.Join(cluster.Root(), "examples", "tutorial-"+name+".yaml")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
