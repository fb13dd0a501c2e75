// Command arbor-executor runs in the pods of syntheses: a small static program, for Arbor's own
// image, that is copied into containers of synthesizers' images.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/arbor-control/arbor/internal/executorpod"
)

// release is set by the linker; see the Makefile.
var release = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	cmd := executorpod.NewCommand()
	cmd.Version = release
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
