// Arbor inspects and operates pod groups, address pools, field ownership and compositions. This is its
// command line, and the control plane of `arbor up`.
package main

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/arbor-control/arbor/internal/cli/root"
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
	os.Exit(root.Execute(newRoot()))
}
