package manager

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/arbor-control/arbor/internal/controller/symphony"
	"github.com/arbor-control/arbor/internal/controller/synthesis"
	"github.com/arbor-control/arbor/internal/executor"
)

// refusal is what compositions say where nothing may be run.
const refusal = "this manager runs no synthesizers; with --local-synthesizers it runs them as local processes, as the user who started it"

// SynthesisOptions are those of the part synthesis.
type SynthesisOptions struct {
	// Local : programs of Synthesizers are run as processes of this machine.
	Local bool
	// Timeout of a synthesis.
	Timeout time.Duration
	// Concurrency is how many syntheses are in flight at most.
	Concurrency int
	// Cooldown is the time between two syntheses of a rollout.
	Cooldown time.Duration
	// Watchdog is after how long a composition that the cluster does not agree with
	// counts as stuck.
	Watchdog time.Duration
}

// DefaultSynthesisOptions run nothing on this machine.
func DefaultSynthesisOptions() SynthesisOptions {
	return SynthesisOptions{Timeout: 30 * time.Second, Concurrency: 10, Cooldown: time.Minute, Watchdog: 3 * time.Minute}
}

// AddFlags binds the options to flags, with the current values as defaults.
func (o *SynthesisOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Local, "local-synthesizers", o.Local, "Run the commands of Synthesizers as local processes, as the user who runs this. Whoever may write Synthesizers may then run anything here.")
	fs.DurationVar(&o.Timeout, "synthesis-timeout", o.Timeout, "How long a synthesis may take before it is given up and tried again.")
	fs.IntVar(&o.Concurrency, "synthesis-concurrency", o.Concurrency, "How many syntheses are in flight at most.")
	fs.DurationVar(&o.Cooldown, "rollout-cooldown", o.Cooldown, "Time between two syntheses that follow a change of a Synthesizer or of a deferred input.")
	fs.DurationVar(&o.Watchdog, "watchdog-threshold", o.Watchdog, "After how long a composition that the cluster does not agree with counts as stuck, in the metric eno_compositions_stuck_reconciling_total.")
}

// Args are the flags that make another manager have these options.
func (o *SynthesisOptions) Args() []string {
	return []string{
		fmt.Sprintf("--local-synthesizers=%t", o.Local),
		fmt.Sprintf("--synthesis-timeout=%s", o.Timeout),
		fmt.Sprintf("--synthesis-concurrency=%d", o.Concurrency),
		fmt.Sprintf("--rollout-cooldown=%s", o.Cooldown),
		fmt.Sprintf("--watchdog-threshold=%s", o.Watchdog),
	}
}

// Validate returns the first thing that is wrong, in words.
func (o *SynthesisOptions) Validate() error {
	switch {
	case o.Timeout < time.Second:
		return fmt.Errorf("--synthesis-timeout %s: it must be at least 1s", o.Timeout)
	case o.Concurrency < 1:
		return fmt.Errorf("--synthesis-concurrency %d: it must be at least 1", o.Concurrency)
	case o.Cooldown < 0:
		return fmt.Errorf("--rollout-cooldown %s: it must not be negative", o.Cooldown)
	case o.Watchdog < 0:
		return fmt.Errorf("--watchdog-threshold %s: it must not be negative", o.Watchdog)
	default:
		return nil
	}
}

// setupSynthesis starts what makes compositions of Symphonies, and slices of
// compositions.
func setupSynthesis(mgr ctrl.Manager, o Options) ([]endpoint, error) {
	s := synthesis.Options{Refusal: refusal, Timeout: o.Synthesis.Timeout, Concurrency: o.Synthesis.Concurrency, Cooldown: o.Synthesis.Cooldown, Patience: o.Synthesis.Watchdog}
	if o.Synthesis.Local {
		s.Executor, s.Refusal = &executor.Process{}, ""
	}

	if err := symphony.SetupWithManager(mgr); err != nil {
		return nil, err
	}

	return nil, synthesis.SetupWithManager(mgr, s, synthesis.NewMetrics(metrics.Registry))
}
