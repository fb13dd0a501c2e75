// Arbor inspects and operates pod groups, address pools, field ownership and compositions. This is its
// command line, and the control plane of `arbor up`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/controlplane"
)

func main() {
	if controlplane.IsChild() {
		controlplane.FollowParent()
	}
	if len(os.Args) > 2 && os.Args[1] == controlplane.Command {
		runComponent(os.Args[2], os.Args[3:])

		return
	}
	// Kubernetes' packages put flags of theirs on every command line.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Who asks twice does not want to wait.
	context.AfterFunc(ctx, stop)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(report(err))
	}
}

// report prints an error once and returns the code to exit with.
func report(err error) int {
	code, exit := 1, (*command.ExitError)(nil)
	if errors.As(err, &exit) {
		code, err = exit.Code, exit.Err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}

	return code
}
