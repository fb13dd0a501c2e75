// Package scheduling_test tests arbor-scheduler on a real API server: gangs that are placed
// completely or not at all, preemption, stale gangs, and crashes of the scheduler and the API
// server.
//
// The cluster has a kube-scheduler, which no pod uses, and kwok, which simulates the nodes. Each
// test has its own namespace and nodes; see lab.
package scheduling_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/arbor-control/arbor/api/crds"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/test/cluster"
)

var (
	server *cluster.Up
	// shared is the scheduler of all tests that need none of their own.
	shared *cluster.Scheduler
)

// sharedName is the schedulerName of pods for it.
const sharedName = "arbor-scheduler"

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(suite{m}, &server, "--bare", "--nodes=1"))
}

type suite struct{ *testing.M }

// Run starts the shared scheduler before the tests. The PodGroups are defined,
// and no webhook checks them, so that bad ones can be stored.
func (s suite) Run() int {
	code, err := s.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return code
}

func (s suite) run() (int, error) {
	c, err := server.NewClient(nil)
	if err != nil {
		return 1, err
	}
	definition, ok := crds.ByKind(v2alpha2.GroupVersion.Group, "PodGroup")
	if !ok {
		return 1, errors.New("there is no CRD of PodGroups")
	}
	if err := c.Create(context.Background(), definition); err != nil {
		return 1, err
	}
	shared, err = server.Scheduler("--scheduler-name="+sharedName+",kai-scheduler", "--v=2")
	if err != nil {
		return 1, err
	}
	defer shared.Stop()
	if err := shared.Await(); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, shared.Output())
	}
	// Most of a test is waiting, and tests that are parallel use nodes and mostly schedulers
	// of their own.
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := flag.Set("test.parallel", "4"); err != nil {
			return 1, err
		}
	}
	code := s.M.Run()
	if code != 0 {
		said := shared.Output()
		const end = 32 << 10
		fmt.Fprintf(os.Stderr, "--- the shared arbor-scheduler\n%s\n", said[max(0, len(said)-end):])
	}

	return code, nil
}
