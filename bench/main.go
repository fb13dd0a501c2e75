// Bench measures what Arbor promises about speed and size, and compares it with
// budgets.yaml. `make bench` runs all scenarios, `make bench ARGS=validation` one
// of them. Figures depend on the machine; what is compared across machines are
// ratios of two figures of one run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/arbor-control/arbor/bench/delivery"
	"github.com/arbor-control/arbor/bench/gangs"
	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/bench/ipam"
)

// A scenario measures some figures.
type scenario struct {
	name string
	run  func(*harness.Board) error
}

// scenarios in the order in which they run.
var scenarios = []scenario{
	{"validation", validation},
	{"addresses", ipam.Addresses},
	{"lint", lint},
	{"start", start},
	{"up", up},
	{"webhook", webhook},
	{"claims", ipam.Claims},
	{"pool", ipam.Pool},
	{"pools", ipam.Pools},
	{"fields", fieldOwnership},
	{"migrate", migrate},
	{"delivery", delivery.Speed},
	{"delivery-memory", delivery.Memory},
	{"compositions", delivery.Compositions},
	{"gangs", gangs.Placement},
	{"gangs-wait", gangs.Waiting},
	{"gangs-preempt", gangs.Preemption},
}

func main() {
	ctrl.SetLogger(logr.Discard()) // controller-runtime complains if there is none
	go func() {
		stopWhenInterrupted()
		os.Exit(130)
	}()
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	laps := fs.Int("laps", 7, "how often the schedulers of scenario gangs take turns; the median counts")
	scale := fs.Int("scale", 1, "divide the nodes and pods of the gang scenarios by this, to try them out; budgets do not apply then")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *laps < 1 || *scale < 1 || *scale > gangs.MaxScale {
		return fmt.Errorf("-laps must be at least 1, and -scale between 1 and %d", gangs.MaxScale)
	}
	for _, name := range fs.Args() {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			return fmt.Errorf("unknown scenario %q", name)
		}
	}
	budgets, err := readBudgets()
	if err != nil {
		return err
	}
	b := harness.NewBoard(os.Stdout, budgets, *laps, *scale)

	return measure(b, fs.Args())
}

// measure runs the wanted scenarios, or all of them. If one fails, the rest still runs.
func measure(b *harness.Board, wanted []string) error {
	var failed error
	for _, s := range scenarios {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", s.name)
		if err := s.run(b); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cannot measure %s: %w", s.name, err))
		}
	}

	return errors.Join(failed, b.Check())
}

// stopWhenInterrupted waits for a signal and then stops the programs that are
// being measured, which would otherwise survive: they have process groups of
// their own.
func stopWhenInterrupted() {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	<-interrupted
	pids, err := harness.Children(os.Getpid())
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}
