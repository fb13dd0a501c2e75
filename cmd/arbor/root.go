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
	"github.com/arbor-control/arbor/internal/manager"
	"github.com/arbor-control/arbor/internal/scheduler/dump"
	"github.com/arbor-control/arbor/internal/scheduler/oracle"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
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
	root.AddCommand(newUp(streams), manager.NewCommand("manager", "arbor manager"), newKubectl(),
		cli.NewLint(streams), cli.NewAudit(streams), cli.NewGroups(streams, scheduling()), cli.NewPools(streams), cli.NewFields(streams),
		cli.NewDelivery(streams), cli.NewVersion(streams, cli.ClientVersion{Version: release, Kubernetes: kubernetesVersion()}), cli.NewUninstall(streams), cli.NewDoctor(streams, cli.Release{Parts: manager.Describe, Answers: manager.Answers}))
	groups := map[string]string{
		"lint": inspect, "audit": inspect, "doctor": inspect, "groups": inspect, "version": inspect,
		"pools": change, "fields": change, "delivery": change, "uninstall": change,
		"up": run, "manager": run, "kubectl": run,
	}
	for _, cmd := range root.Commands() {
		cmd.GroupID = groups[cmd.Name()]
	}
	cli.RejectUnknown(root)
	cli.CompleteNames(root)

	return root
}

// scheduling is what the command line may ask the scheduler.
func scheduling() cli.Scheduling {
	return cli.Scheduling{
		Open: func(ctx context.Context, cluster *rest.Config, minimums, file string) (cli.Oracle, error) {
			o := settings.DefaultOptions()
			o.Minimums = minimums

			return oracle.Open(ctx, cluster, o, file)
		},
		Offline: dump.Offline,
		Kinds:   dump.Kinds,
		Knows:   dump.Knows,
	}
}
