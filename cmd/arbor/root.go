package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs with auth-provider: oidc
	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/internal/cli"
	"github.com/arbor-control/arbor/internal/cli/doctor"
	"github.com/arbor-control/arbor/internal/cli/groups"
	"github.com/arbor-control/arbor/internal/cli/version"
	"github.com/arbor-control/arbor/internal/manager"
	"github.com/arbor-control/arbor/internal/scheduler"
)

// release is set by the linker; see the Makefile.
var release = "development"

func newRoot() *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := &cobra.Command{
		Use:           "arbor",
		Short:         "Inspect and operate pod groups, address pools, field ownership and compositions",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       release + " (Kubernetes " + kubernetesVersion() + ")",
	}
	if filepath.Base(os.Args[0]) == "kubectl-arbor" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl arbor"}
	}
	inspect, change, run := "inspect", "change", "run"
	root.AddGroup(&cobra.Group{ID: inspect, Title: "Inspect (lint checks files, audit checks objects, doctor checks Arbor itself):"},
		&cobra.Group{ID: change, Title: "Inspect and change:"}, &cobra.Group{ID: run, Title: "Run:"})
	root.AddCommand(newUp(streams), manager.NewCommand("manager", "arbor manager"), newKubectl())
	root.AddCommand(cli.Commands(streams, cli.Environment{
		Scheduling: scheduling(),
		Version:    version.Client{Version: release, Kubernetes: kubernetesVersion()},
		Release:    doctor.Release{Parts: manager.Describe, Answers: manager.Answers},
	})...)
	sections := map[string]string{
		"lint": inspect, "audit": inspect, "doctor": inspect, "groups": inspect, "version": inspect,
		"pools": change, "fields": change, "delivery": change, "uninstall": change,
		"up": run, "manager": run, "kubectl": run,
	}
	for _, cmd := range root.Commands() {
		cmd.GroupID = sections[cmd.Name()]
	}
	cli.RejectUnknown(root)
	cli.CompleteNames(root)

	return root
}

// scheduling is what the command line may ask the scheduler.
func scheduling() groups.Scheduling {
	return groups.Scheduling{
		Open: func(ctx context.Context, cluster *rest.Config, minimums, file string) (groups.Oracle, error) {
			o := scheduler.DefaultOptions()
			o.Minimums = minimums

			return scheduler.Open(ctx, cluster, o, file)
		},
		Offline: scheduler.Offline,
		Kinds:   scheduler.Kinds,
		Knows:   scheduler.Knows,
	}
}
