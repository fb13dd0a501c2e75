// Bench measures what Arbor promises about speed and size, and compares it with
// budgets.yaml. `make bench` runs all of it, `make bench ARGS=validation` a
// part. Figures depend on the machine; what is compared across machines are
// ratios of two figures of one run.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// A result is one figure.
type result struct {
	name  string
	value float64
}

// A scenario measures some figures.
type scenario struct {
	name string
	run  func() ([]result, error)
}

// scenarios in the order in which they run.
var scenarios = []scenario{
	{"validation", validation},
	{"addresses", addresses},
	{"lint", lint},
	{"up", up},
	{"webhook", webhook},
	{"claims", claims},
	{"pool", pool},
	{"fields", fieldOwnership},
	{"migrate", migrate},
	{"delivery", delivery},
	{"delivery-memory", deliveryMemory},
	{"gangs", gangs},
	{"gangs-wait", gangsWait},
}

func main() {
	ctrl.SetLogger(logr.Discard()) // its silence would be complained about
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(wanted []string) error {
	budgets, err := readBudgets()
	if err != nil {
		return err
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
			return fmt.Errorf("unknown scenario %q", name)
		}
	}

	var all []result
	for _, s := range scenarios {
		if len(wanted) > 0 && !slices.Contains(wanted, s.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", s.name)
		results, err := s.run()
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", s.name, err)
		}
		all = append(all, results...)
	}

	return report(all, budgets)
}

// report prints every figure beside its budget, and fails when one is over.
func report(results []result, budgets map[string]budget) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIGURE\tVALUE\tUNIT\tBUDGET\t")
	var broken []string
	for _, r := range results {
		b, ok := budgets[r.name]
		if !ok {
			return errors.New("there is no budget for " + r.name)
		}
		verdict := "ok"
		if !b.keeps(r.value) {
			verdict = "BROKEN"
			broken = append(broken, r.name)
		}
		fmt.Fprintf(w, "%s\t%.3g\t%s\t%s\t%s\n", r.name, r.value, b.Unit, b.limit(), verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(broken) > 0 {
		return fmt.Errorf("budgets are broken: %s", strings.Join(broken, ", "))
	}

	return nil
}
