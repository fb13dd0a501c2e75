// Kubectl-arbor is the slim command line of Arbor, for kubectl arbor: all commands but those that
// need a control plane or simulate scheduling.
package main

import (
	"os"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs with auth-provider: oidc
	kubeversion "k8s.io/component-base/version"

	"github.com/arbor-control/arbor/internal/cli/root"
	"github.com/arbor-control/arbor/internal/cli/version"
	"github.com/arbor-control/arbor/internal/clusterfacts"
	"github.com/arbor-control/arbor/internal/manager"
)

// release is set by the linker; see the Makefile.
var release = "development"

func main() {
	// Kubernetes' packages put flags of theirs on every command line.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	os.Exit(root.Execute(root.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, root.Options{
		Version: version.Client{Version: release, Kubernetes: kubeversion.Get().GitVersion},
		Release: clusterfacts.Release{Parts: manager.Describe, Answers: manager.Answers},
	})))
}
