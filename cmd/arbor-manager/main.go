// Arbor's manager alone, for an image: controllers and webhooks, without the
// command line and without Kubernetes itself.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/arbor-control/arbor/internal/manager"
	"github.com/arbor-control/arbor/internal/memlimit"
)

// release is set by the linker; see the Makefile.
var release = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	cmd := manager.NewCommand("arbor-manager", "arbor-manager")
	cmd.Version = release
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := memlimit.Apply(os.Getenv)
	if err == nil {
		err = cmd.ExecuteContext(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
