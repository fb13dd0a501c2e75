package monitoring_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/arbor-control/arbor/test/cluster"
)

var server *cluster.Up

func TestMain(m *testing.M) {
	flag.Parse()
	// Scenarios wait for Prometheus rather than for a core, so they all wait at once.
	if err := flag.Set("test.parallel", "32"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cluster.Main(m, &server, "--bare", "--nodes=0"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
