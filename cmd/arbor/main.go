// Arbor keeps trees in a Kubernetes cluster true: this is its command line,
// and the control plane of `arbor up`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli"
	"github.com/arbor-control/arbor/internal/controlplane"
	"github.com/arbor-control/arbor/internal/manager"
)

func main() {
	if controlplane.IsChild() {
		controlplane.FollowParent()
	}
	if len(os.Args) > 2 && os.Args[1] == controlplane.Command {
		runComponent(os.Args[2], os.Args[3:])

		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		os.Exit(report(err))
	}
}

func newRoot() *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := &cobra.Command{
		Use:           "arbor",
		Short:         "Keeps the trees in a Kubernetes cluster true",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	if filepath.Base(os.Args[0]) == "kubectl-arbor" {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl arbor"}
	}
	root.AddCommand(newUp(streams), manager.NewCommand("manager"), newKubectl(streams),
		cli.NewLint(streams), cli.NewAudit(streams), cli.NewGroups(streams))

	return root
}

// report prints an error once and returns the code to exit with.
func report(err error) int {
	code, exit := 1, (*cli.ExitError)(nil)
	if errors.As(err, &exit) {
		code, err = exit.Code, exit.Err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}

	return code
}
