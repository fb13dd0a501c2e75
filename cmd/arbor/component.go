package main

import (
	"os"

	kubeversion "k8s.io/component-base/version"

	"github.com/arbor-control/arbor/internal/controlplane"
	"github.com/arbor-control/arbor/internal/controlplane/component"
	"github.com/arbor-control/arbor/internal/scheduler"
	"github.com/arbor-control/arbor/internal/scheduler/settings"
)

// runComponent is the life of a child that is a part of Kubernetes, or takes the place of
// one.
func runComponent(name string, args []string) {
	if name == settings.Name {
		os.Exit(scheduler.Main(args)) //nolint:revive // it is all that this process is for
	}
	if err := component.Run(name, args); err != nil {
		controlplane.Die(err)
	}
}

// kubernetesVersion is set by the linker; see the Makefile.
func kubernetesVersion() string {
	return kubeversion.Get().GitVersion
}
