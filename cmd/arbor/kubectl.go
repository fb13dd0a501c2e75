package main

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

// newKubectl is kubectl itself, for machines that have none.
func newKubectl(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{IOStreams: streams})
	cmd.Use = "kubectl"
	cmd.Short = "kubectl, for machines that have none"

	return cmd
}
