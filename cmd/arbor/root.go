package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs with auth-provider: oidc
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/internal/cli/groups"
	"github.com/arbor-control/arbor/internal/cli/root"
	"github.com/arbor-control/arbor/internal/cli/version"
	"github.com/arbor-control/arbor/internal/clusterfacts"
	"github.com/arbor-control/arbor/internal/manager"
	"github.com/arbor-control/arbor/internal/scheduler/dump"
	"github.com/arbor-control/arbor/internal/scheduler/oracle"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// release is set by the linker; see the Makefile.
var release = "development"

func newRoot() *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}

	return root.New(streams, root.Options{
		Version:    version.Client{Version: release, Kubernetes: kubernetesVersion()},
		Scheduling: scheduling(),
		Release:    clusterfacts.Release{Parts: manager.Describe, Answers: manager.Answers},
		Run:        []*cobra.Command{newUp(streams), manager.NewCommand("manager", "arbor manager"), newKubectl()},
	})
}

// scheduling is what the command line may ask the scheduler.
func scheduling() *groups.Scheduling {
	return &groups.Scheduling{
		Open: func(ctx context.Context, cluster *rest.Config, minimums, file string) (groups.Oracle, error) {
			o := settings.DefaultOptions()
			o.Minimums = minimums

			return oracle.Open(ctx, cluster, o, file)
		},
		Offline: dump.Offline,
		Kinds:   dump.Kinds,
		Knows:   dump.Knows,
	}
}
