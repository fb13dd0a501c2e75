package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli"
	"github.com/arbor-control/arbor/internal/manager"
)

// release is set by the linker; see the Makefile.
var release = "development"

func newRoot() *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := &cobra.Command{
		Use:           "arbor",
		Short:         "Keeps the trees in a Kubernetes cluster true",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       release + " (Kubernetes " + kubernetesVersion() + ")",
	}
	if filepath.Base(os.Args[0]) == "kubectl-arbor" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl arbor"}
	}
	root.AddCommand(newUp(streams), manager.NewCommand("manager", "arbor manager"), newKubectl(),
		cli.NewLint(streams), cli.NewAudit(streams), cli.NewGroups(streams), cli.NewPools(streams), cli.NewFields(streams),
		cli.NewDelivery(streams), cli.NewDoctor(streams, cli.Release{Parts: manager.Describe, Answers: manager.Answers}))

	return root
}
