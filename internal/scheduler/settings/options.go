package settings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/arbor-control/arbor/engine/gang"
)

// Name is the scheduler that pods ask for, and that of the program.
const Name = "arbor-scheduler"

// Options are what arbor-scheduler has beyond kube-scheduler.
type Options struct {
	// Names are the schedulers that it answers for.
	Names []string
	// Minimums is whose reading of minMember counts: arbor's or kai's.
	Minimums string
	// StaleGrace is how long a gang that lost pods may stay below its minimum; 0 means
	// forever.
	StaleGrace time.Duration
	// BindTimeout is how long a gang may take from its decision until its minimum is
	// ready to be bound.
	BindTimeout time.Duration
	// Preemption reports whether gangs may preempt pods of a lower priority.
	Preemption bool
	// RespectPDB keeps gangs from preempting pods whose eviction violates a
	// PodDisruptionBudget.
	RespectPDB bool
	// MaxEvictionRatio bounds how many pods may be evicted for each pod that is
	// placed. 0: no bound.
	MaxEvictionRatio float64
}

// Readings of minMember.
const (
	readingArbor = "arbor"
	readingKAI   = "kai"
)

// DefaultOptions are those of a scheduler beside the one that the cluster has.
func DefaultOptions() Options {
	return Options{Names: []string{Name}, Minimums: readingArbor, StaleGrace: time.Minute, BindTimeout: 10 * time.Minute, Preemption: true}
}

// AddFlags makes the options flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Names, "scheduler-name", o.Names,
		"Scheduler that pods ask for with spec.schedulerName; may be repeated, for instance with kai-scheduler so that KAI's pods run unchanged. "+
			"Not for use with --config, whose profiles have names.")
	fs.StringVar(&o.Minimums, "minimums", o.Minimums,
		`How minMember is read. "arbor": for a subgroup with children, and for the group, it counts the pods below. "kai": it counts for leaves only.`)
	fs.DurationVar(&o.StaleGrace, "stale-grace", o.StaleGrace,
		"How long a gang, or an optional subgroup, that lost pods may stay below its minimum before its remaining pods are evicted. 0 means forever. "+
			"A PodGroup's stalenessGracePeriod takes precedence: there, 0 means at once and a negative value means forever.")
	fs.DurationVar(&o.BindTimeout, "bind-timeout", o.BindTimeout,
		"How long the Permit and PreBind plugins of a gang's pods may take, for instance to provision volumes. "+
			"When the time is over, no pod of the gang is bound and the gang is tried again later.")
	fs.BoolVar(&o.Preemption, "gang-preemption", o.Preemption,
		"Whether gangs may preempt pods of a lower priority. Nothing is evicted unless the whole gang fits then.")
	fs.BoolVar(&o.RespectPDB, "respect-pdb", o.RespectPDB,
		"Never preempt pods for a gang if that violates a PodDisruptionBudget. By default, such pods are preempted last.")
	fs.Float64Var(&o.MaxEvictionRatio, "max-eviction-ratio", o.MaxEvictionRatio,
		"Most pods that a gang may preempt for each of its own pods; 0 means no limit.")
}

// Args are the flags that make these options.
func (o *Options) Args() []string {
	return []string{
		"--scheduler-name=" + strings.Join(o.Names, ","),
		"--minimums=" + o.Minimums,
		"--stale-grace=" + o.StaleGrace.String(),
		"--bind-timeout=" + o.BindTimeout.String(),
		"--gang-preemption=" + strconv.FormatBool(o.Preemption),
		"--respect-pdb=" + strconv.FormatBool(o.RespectPDB),
		"--max-eviction-ratio=" + strconv.FormatFloat(o.MaxEvictionRatio, 'g', -1, 64),
	}
}

// Validate says what is wrong, in words.
func (o *Options) Validate() error {
	if !slices.Contains([]string{readingArbor, readingKAI}, o.Minimums) {
		return fmt.Errorf("--minimums %q: it must be %q or %q", o.Minimums, readingArbor, readingKAI)
	}
	if o.StaleGrace < 0 {
		return fmt.Errorf("--stale-grace %s: it must not be negative; 0 means forever", o.StaleGrace)
	}
	if o.BindTimeout <= 0 {
		return fmt.Errorf("--bind-timeout %s: it must be positive", o.BindTimeout)
	}
	if o.MaxEvictionRatio < 0 || math.IsNaN(o.MaxEvictionRatio) {
		return fmt.Errorf("--max-eviction-ratio %g: it must be a number that is not negative; 0 means no limit", o.MaxEvictionRatio)
	}
	if len(o.Names) == 0 {
		return fmt.Errorf("--scheduler-name: name at least one, such as %q", Name)
	}
	for i, name := range o.Names {
		if name == "" || slices.Contains(o.Names[:i], name) {
			return fmt.Errorf("--scheduler-name %q: names must differ and not be empty", strings.Join(o.Names, ","))
		}
	}

	return nil
}

// Rules are how minimums are read.
func (o *Options) Rules() gang.Rules { return gang.Rules{LeavesOnly: o.Minimums == readingKAI} }
