// Package chaos_test injects faults into a cluster under load and then checks all invariants.
// docs/safety/faults.md describes the faults; make chaos runs more rounds.
package chaos_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/arbor-control/arbor/test/cluster"
)

var (
	server *cluster.Up

	rounds = flag.Int("rounds", 1, "how often each fault is done, or as often as it can be")
	soak   = flag.Duration("soak", 0, "how long the soak takes; with 0 it is left out")
	seed   = flag.Uint64("seed", 1, "seed of everything that is random")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := cluster.Main(m, &server, "--bare", "--nodes=0")
	report.print(os.Stdout)
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A row is what came of one fault.
type row struct {
	fault   string
	count   int
	acked   int
	unsure  int
	objects int
	lost    int
	settled time.Duration
	before  level
	after   level
	// failed is whether the test of this fault failed; why is what did not settle.
	failed bool
	why    string
}

type table []row

var report table

func (t table) print(to *os.File) {
	if len(t) == 0 {
		return
	}
	fmt.Fprintf(to, "%-40s %6s %7s %7s %8s %5s %8s %12s %9s %9s\n", "fault", "count", "writes", "unsure", "objects", "lost", "settled", "goroutines", "files", "watches")
	for _, r := range t {
		change := func(before, after int) string {
			if before == 0 {
				return "-"
			}

			return fmt.Sprintf("%d→%d", before, after)
		}
		verdict := ""
		if r.failed {
			verdict = "  FAILED " + r.why
		}
		fmt.Fprintf(to, "%-40s %6d %7d %7d %8d %5d %8s %12s %9s %9s%s\n", r.fault, r.count, r.acked, r.unsure, r.objects, r.lost, r.settled.Round(100*time.Millisecond),
			change(r.before.goroutines, r.after.goroutines), change(r.before.files, r.after.files), change(r.before.watches, r.after.watches), verdict)
	}
}
