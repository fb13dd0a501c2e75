package manager

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/arbor-control/arbor/internal/controller/namespacerecovery"
	"github.com/arbor-control/arbor/internal/controller/symphony"
	"github.com/arbor-control/arbor/internal/controller/synthesis"
	"github.com/arbor-control/arbor/internal/controller/synthesispod"
	synthesisrules "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/executor"
)

// noExecutor is the message of compositions if no program may be run.
const noExecutor = "this manager runs no synthesizers; with --executor-image it runs them in pods, and with --local-synthesizers as local processes, as the user who started it"

// maxHistory is the highest --history-limit: the status holds all of them, with the
// results of each.
const maxHistory = 50

// SynthesisOptions are those of the part synthesis.
type SynthesisOptions struct {
	// Local runs the programs of Synthesizers as processes on this machine.
	Local bool
	// Image with arbor-executor in it: with it, programs run in pods.
	Image string
	// PodNamespace of those, "" for the one of the manager, and the account that
	// they read inputs and write slices with.
	PodNamespace, PodServiceAccount string
	// Pods is how these pods are scheduled and labeled.
	Pods PodOptions
	// CreationTTL is how long the kubelet may take to report the status of the containers of a pod.
	CreationTTL time.Duration
	// PullTimeout is how long the kubelet may take from then on to pull images and to start
	// the containers of a pod.
	PullTimeout time.Duration
	// Timeout of a synthesis.
	Timeout time.Duration
	// Concurrency is how many syntheses are in flight at most.
	Concurrency int
	// Cooldown is the time between two syntheses of a rollout.
	Cooldown time.Duration
	// MaxFailures is how many compositions may fail before a rollout halts, 0 for any number.
	MaxFailures int
	// HistoryLimit is how many syntheses before the previous one are kept.
	HistoryLimit int
	// Watchdog is after how long a composition that the cluster does not agree with
	// counts as stuck.
	Watchdog time.Duration
	// NamespaceCleanup recreates a namespace that was force-deleted, so that the objects left in it
	// can be deleted.
	NamespaceCleanup bool
}

// DefaultSynthesisOptions run nothing on this machine.
func DefaultSynthesisOptions() SynthesisOptions {
	return SynthesisOptions{
		Timeout: 30 * time.Second, Concurrency: 10, Cooldown: time.Minute, MaxFailures: synthesisrules.DefaultMaxFailures, Watchdog: 3 * time.Minute,
		CreationTTL: 10 * time.Second, PullTimeout: 5 * time.Minute, Pods: defaultPodOptions(), PodServiceAccount: "arbor-synthesizer", HistoryLimit: synthesisrules.DefaultHistoryLimit,
	}
}

// AddFlags binds the options to flags, with the current values as defaults.
func (o *SynthesisOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Local, "local-synthesizers", o.Local, "Run the commands of Synthesizers as local processes, as the user who runs this. Users who may write Synthesizers can then run any program here.")
	fs.StringVar(&o.Image, "executor-image", o.Image, "Run the commands of Synthesizers in pods. This is the image that contains arbor-executor, which these pods need in addition to the image of the Synthesizer. If empty, no pods are created.")
	fs.StringVar(&o.PodNamespace, "synthesizer-pod-namespace", o.PodNamespace, "Namespace of the pods of --executor-image. Defaults to --namespace.")
	fs.StringVar(&o.PodServiceAccount, "synthesizer-pod-service-account", o.PodServiceAccount, "Service account of these pods, which reads inputs and writes ResourceSlices.")
	o.Pods.AddFlags(fs)
	fs.DurationVar(&o.CreationTTL, "container-creation-ttl", o.CreationTTL, "How long the kubelet may take, after a pod was scheduled, to report the status of its containers. Then the pod is deleted and created again. Pulling images has its own limit.")
	fs.DurationVar(&o.PullTimeout, "image-pull-timeout", o.PullTimeout, "How long the kubelet may take to mount the volumes of a pod, create its network, pull its images and start its containers, before the synthesis is canceled and retried. This time is not counted by --synthesis-timeout.")
	fs.DurationVar(&o.Timeout, "synthesis-timeout", o.Timeout, "How long a synthesis may take before it is canceled and retried. In a pod, the time starts when the containers run.")
	fs.IntVar(&o.Concurrency, "synthesis-concurrency", o.Concurrency, "Maximum number of syntheses in flight.")
	fs.DurationVar(&o.Cooldown, "rollout-cooldown", o.Cooldown, "Time between two syntheses that are triggered by a change of a Synthesizer or of a deferred input.")
	fs.IntVar(&o.MaxFailures, "rollout-max-failures", o.MaxFailures, "How many compositions may fail with a generation of a Synthesizer before its rollout is halted. 0 means no limit.")
	fs.IntVar(&o.HistoryLimit, "history-limit", o.HistoryLimit, "How many syntheses a composition keeps for rollbacks, in addition to the current and the previous one.")
	fs.DurationVar(&o.Watchdog, "watchdog-threshold", o.Watchdog, "How long a composition may be reconciling before it counts as stuck in the metric eno_compositions_stuck_reconciling_total.")
	fs.BoolVar(&o.NamespaceCleanup, "namespace-cleanup", o.NamespaceCleanup, "Recreate a namespace that was force-deleted while it held Compositions, so that they can be cleaned up, then delete it.")
}

// Args are the flags that make another manager have these options.
func (o *SynthesisOptions) Args() []string { return flagArgs(o.AddFlags) }

// Validate returns the first thing that is wrong, in words.
func (o *SynthesisOptions) Validate() error {
	switch {
	case o.Timeout < time.Second:
		return fmt.Errorf("--synthesis-timeout %s: it must be at least 1s", o.Timeout)
	case o.Concurrency < 1:
		return fmt.Errorf("--synthesis-concurrency %d: it must be at least 1", o.Concurrency)
	case o.Cooldown < 0:
		return fmt.Errorf("--rollout-cooldown %s: it must not be negative", o.Cooldown)
	case o.MaxFailures < 0:
		return fmt.Errorf("--rollout-max-failures %d: it must be 0 (never halt) or more", o.MaxFailures)
	case o.HistoryLimit < 0 || o.HistoryLimit > maxHistory:
		return fmt.Errorf("--history-limit %d: it must be 0 to %d", o.HistoryLimit, maxHistory)
	case o.Watchdog < 0:
		return fmt.Errorf("--watchdog-threshold %s: it must not be negative", o.Watchdog)
	default:
		return o.validatePods()
	}
}

func (o *SynthesisOptions) validatePods() error {
	if err := o.Pods.Validate(); err != nil {
		return err
	}
	switch {
	case o.Image == "":
		return nil
	case o.Local:
		return fmt.Errorf("--executor-image %q and --local-synthesizers: synthesizers run in pods or as local processes; leave one of the two out", o.Image)
	case o.PodServiceAccount == "":
		return errors.New("--synthesizer-pod-service-account is empty: name the service account that pods of synthesizers read inputs and write ResourceSlices with")
	case o.CreationTTL < time.Second:
		return fmt.Errorf("--container-creation-ttl %s: it must be at least 1s", o.CreationTTL)
	case o.PullTimeout < time.Second:
		return fmt.Errorf("--image-pull-timeout %s: it must be at least 1s", o.PullTimeout)
	default:
		return nil
	}
}

// podNamespace is where pods of synthesizers run.
func podNamespace(o Options) string { return cmp.Or(o.Synthesis.PodNamespace, o.Namespace) }

// setupSynthesis starts what makes compositions of Symphonies, and slices of
// compositions.
func setupSynthesis(mgr ctrl.Manager, o Options) ([]endpoint, error) {
	rules := tenancy.Rules{Scope: tenancy.Scope(o.Scope), InputNamespaces: o.InputNamespaces}
	s := synthesis.Options{Rules: rules, Disabled: noExecutor, Timeout: o.Synthesis.Timeout, Concurrency: o.Synthesis.Concurrency, Cooldown: o.Synthesis.Cooldown, MaxFailures: o.Synthesis.MaxFailures, Namespace: o.Delivery.Namespace, StuckAfter: o.Synthesis.Watchdog, HistoryLimit: o.Synthesis.HistoryLimit}
	if o.Synthesis.Local {
		s.Executor, s.Disabled = &executor.Process{}, ""
		if n := executor.KillAbandoned(); n > 0 {
			mgr.GetLogger().Info("Killed processes of synthesizers whose manager was killed", "processes", n)
		}
	}
	if o.Synthesis.Image != "" {
		s.Pods, s.Disabled = true, ""
		s.Startup = o.Synthesis.Timeout + o.Synthesis.PullTimeout // until it is scheduled, and its images are there
		pods := synthesispod.Options{
			Rules: rules,
			Image: o.Synthesis.Image, Namespace: podNamespace(o), ServiceAccount: o.Synthesis.PodServiceAccount,
			Timeout: o.Synthesis.Timeout, CreationTTL: o.Synthesis.CreationTTL, PullTimeout: o.Synthesis.PullTimeout, HistoryLimit: o.Synthesis.HistoryLimit,
		}
		o.Synthesis.Pods.apply(&pods)
		err := synthesispod.SetupWithManager(mgr, pods, metrics.Registry)
		if err != nil {
			return nil, err
		}
	}

	if o.Synthesis.NamespaceCleanup {
		if err := namespacerecovery.SetupWithManager(mgr); err != nil {
			return nil, err
		}
	}
	if err := symphony.SetupWithManager(mgr); err != nil {
		return nil, err
	}

	return nil, synthesis.SetupWithManager(mgr, s, synthesis.NewMetrics(metrics.Registry))
}
