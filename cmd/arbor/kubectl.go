package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
)

// newKubectl returns kubectl, for machines without it. The command is created only when it is
// needed, since its constructor reads the arguments (for plugins).
func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl",
		Short:              "kubectl, for machines that have none",
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			os.Args = append([]string{"kubectl"}, args...)
			cmd := kubectl.NewDefaultKubectlCommand()
			if err := cli.RunNoErrOutput(cmd); err != nil {
				kubectlutil.CheckErr(err)
			}
		},
	}
}
