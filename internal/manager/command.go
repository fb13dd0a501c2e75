package manager

import (
	"github.com/spf13/cobra"
)

// NewCommand returns the command that runs the manager, under the name that
// its binary or its parent gives it.
// called is how people type it.
func NewCommand(use, called string) *cobra.Command {
	o := DefaultOptions()
	cmd := &cobra.Command{
		Use:   use,
		Short: "Run Arbor's controllers and webhooks against a cluster",
		Long: `Run Arbor's controllers and admission webhooks against an existing cluster.

It installs the CustomResourceDefinitions of the enabled components (and changes
no other), creates and rotates the certificates of the webhooks, and registers
the webhooks once they can be reached.`,
		Example: `  # In a cluster, as the deployment does it
  ` + called + ` --webhook-service=arbor-webhook

  # On a laptop, on a control plane that was started with arbor up --bare
  ` + called + ` --kubeconfig=.arbor/kubeconfig --metrics-bind-address=127.0.0.1:8080 --metrics-secure=false

  # Controllers only, next to another replica
  ` + called + ` --webhooks=false --metrics-bind-address=0 --health-probe-bind-address=0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Run(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd.Flags())

	return cmd
}
