package cli

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/audit"
	"github.com/arbor-control/arbor/internal/cli/delivery"
	"github.com/arbor-control/arbor/internal/cli/doctor"
	"github.com/arbor-control/arbor/internal/cli/fields"
	"github.com/arbor-control/arbor/internal/cli/groups"
	"github.com/arbor-control/arbor/internal/cli/lint"
	"github.com/arbor-control/arbor/internal/cli/pools"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/cli/uninstall"
	"github.com/arbor-control/arbor/internal/cli/version"
	"github.com/arbor-control/arbor/internal/clusterfacts"
)

// An Environment is what the commands need to know of the binary that they are part of.
type Environment struct {
	Scheduling groups.Scheduling
	Version    version.Client
	Release    clusterfacts.Release
}

// Commands returns the commands, on the cluster that their flags name.
func Commands(streams genericiooptions.IOStreams, e Environment) []*cobra.Command {
	return []*cobra.Command{
		lint.New(streams),
		audit.New(streams, source.Connect),
		groups.New(streams, source.Connect, e.Scheduling),
		pools.New(streams, source.Connect, source.ConnectEditor),
		fields.New(streams, fields.Find, fields.ConnectMigrator),
		delivery.New(streams, source.Connect, delivery.ConnectServer, time.Now),
		version.New(streams, e.Version),
		uninstall.New(streams, source.Connect, source.ConnectEditor),
		doctor.New(streams, e.Release),
	}
}
