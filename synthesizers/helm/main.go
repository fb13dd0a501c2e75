// The stock synthesizer "helm": see docs/tasks/stock-synthesizers.md. It is a module
// of its own because Helm needs another version of Kubernetes than Arbor.
package main

import (
	"context"
	"flag"
	"os"
	"strings"

	"github.com/arbor-control/arbor/internal/stock"
)

// release is set by the linker; see the Makefile.
var release = "development"

func main() { os.Exit(command().Main()) }

func command() stock.Command {
	var o options

	return stock.Command{
		Name: "arbor-synthesizer-helm", Release: release,
		Register: o.register,
		Render:   func(r stock.Request) (stock.Rendering, error) { return o.render(context.Background(), r) },
	}
}

// options are the flags.
type options struct {
	chart, release, kubeVersion string
	apiVersions                 []string
}

func (o *options) register(flags *flag.FlagSet) {
	flags.StringVar(&o.chart, "chart", "/chart", "The chart: a directory, or an archive. Its dependencies must be in it.")
	flags.StringVar(&o.release, "release-name", "", "Name of the release. The default is the name of the Composition.")
	flags.StringVar(&o.kubeVersion, "kube-version", "", "Version of Kubernetes that templates see, such as 1.36. The default is the one that Helm was built for.")
	flags.Func("api-versions", "API versions that templates see besides those of Kubernetes, separated by commas, such as monitoring.coreos.com/v1. May be repeated.", func(text string) error {
		for version := range strings.SplitSeq(text, ",") {
			if version = strings.TrimSpace(version); version != "" {
				o.apiVersions = append(o.apiVersions, version)
			}
		}

		return nil
	})
}
