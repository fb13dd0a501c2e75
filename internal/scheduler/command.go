package scheduler

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// NewCommand is the program: kube-scheduler's flags, and those of Options.
func NewCommand(use string) *cobra.Command {
	kube, o := options.NewOptions(), settings.DefaultOptions()
	limitClient(kube)
	// There is a kube-scheduler in most clusters, and this is not it.
	kube.LeaderElection.ResourceName = settings.Name
	cmd := &cobra.Command{
		Use:   use,
		Short: "Place pods, those of a PodGroup together or not at all",
		Long: `Place pods on nodes, as kube-scheduler does, with its plugins, its configuration
and its metrics, and those of a PodGroup together, as the group's tree says, or not
at all. A group that has to wait keeps no room, except while pods that it preempts
terminate.

It answers for pods with spec.schedulerName: ` + settings.Name + `, so it can run beside the
scheduler that the cluster has.`,
		Example: `  # Beside the cluster's own scheduler
  ` + use + ` --kubeconfig=scheduler.kubeconfig

  # For pods that were written for KAI too, with its reading of minimums
  ` + use + ` --scheduler-name=` + settings.Name + ` --scheduler-name=kai-scheduler --minimums=kai`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return kube.ComponentGlobalsRegistry.Set()
		},
		RunE: func(*cobra.Command, []string) error {
			if err := o.Validate(); err != nil {
				return err
			}

			return run(kube, &o)
		},
	}
	o.AddFlags(kube.Flags.FlagSet("gangs"))
	verflag.AddFlags(kube.Flags.FlagSet("global"))
	globalflag.AddGlobalFlags(kube.Flags.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, f := range kube.Flags.FlagSets {
		cmd.Flags().AddFlagSet(f)
	}

	return cmd
}

func run(kube *options.Options, o *settings.Options) error {
	verflag.PrintAndExitIfRequested()
	gates := kube.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(kube.Logs, gates); err != nil {
		return fmt.Errorf("cannot set up logging: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-server.SetupSignalHandler()
		cancel()
	}()

	config, s, err := setup(ctx, kube, o)
	if err != nil {
		return err
	}
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	kube.ComponentGlobalsRegistry.AddMetrics()
	if err := s.start(ctx); err != nil {
		return err
	}
	err = app.Run(ctx, config, s.kube)
	if ctx.Err() != nil {
		return nil // that is what was asked for
	}

	return err
}

// Main runs the program with arguments and returns the code to exit with.
func Main(args []string) int {
	cmd := NewCommand(settings.Name)
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)

		return 1
	}

	return 0
}
