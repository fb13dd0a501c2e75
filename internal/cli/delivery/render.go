package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/krm"
)

const deliveryRenderExamples = `  # What does the program make of this composition? All inputs are in the file
  arbor compositions render -f composition.yaml --synthesizer synthesizer.yaml

  # Run the program that is being developed; inputs that are in no file are read from the cluster
  arbor compositions render -f composition.yaml --exec 'go run ./synthesizer'

  # Several files, and only some of the manifests
  arbor compositions render -f composition.yaml -f inputs/ --exec ./synthesize -o json | jq '.items[] | select(.kind == "Deployment")'

  # What would it change in the cluster? For CI
  arbor compositions plan -f composition.yaml --synthesizer synthesizer.yaml`

type deliveryRenderOptions struct {
	deliveryScope
	renderer

	servers serverConnector
	format  string
}

func newDeliveryRender(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector) *cobra.Command {
	o := &deliveryRenderOptions{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}
	cmd := &cobra.Command{
		Use:   "render -f COMPOSITION.yaml (--synthesizer FILE | --exec COMMAND)",
		Short: "Run the program of a composition on this machine, and print its manifests",
		Long: `Run the program of a composition on this machine, as the synthesis would, and print the
manifests. The program is the command of the Synthesizer in --synthesizer, or --exec. A
command that is only in the cluster is never run.

The files must have one Composition. Inputs are taken from the files too, by group, kind,
namespace and name, and from the cluster if they are in no file. If all are in files, no
cluster is needed. With --exec alone, the Synthesizer that says which inputs there are is
taken from the files or from the cluster; of the latter, only its refs are used.

The program gets the environment of the synthesis, PATH and HOME, and nothing else. Nothing
is written to the cluster. What the program writes to standard error, and its results, are
printed on standard error.

Exit codes: 0 the manifests were printed, 1 the program failed, or its output is not a list of
manifests, 2 it could not be run.`,
		Example: deliveryRenderExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", render.FormatYAML, "output format: yaml (one document per manifest) or json (a List)")
	cmd.Flags().StringArrayVarP(&o.Paths, "filename", "f", nil, "file or folder with the Composition and inputs, - for standard input; may be repeated")
	o.addFlags(cmd.Flags())
	o.Flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *deliveryRenderOptions) run(ctx context.Context) error {
	if err := render.CheckFormat(o.format, render.FormatYAML, render.FormatJSON); err != nil {
		return err
	}

	if err := o.check(o.Paths); err != nil {
		return err
	}

	done, err := o.render(ctx, &o.renderer, o.servers)
	o.report(done)

	switch {
	case errors.Is(err, errProgram):
		return &command.ExitError{Code: command.ExitFound, Err: err}
	case err != nil:
		return command.Blind("%w", err)
	}

	return o.print(done.output.Items)
}

// report prints what the program has to say.
func (s *deliveryScope) report(r *rendering) {
	if r == nil {
		return
	}

	for line := range strings.Lines(r.log) {
		_, _ = fmt.Fprintln(s.ErrOut, render.Clean(strings.TrimSuffix(line, "\n")))
	}

	for _, one := range r.output.Results {
		_, _ = fmt.Fprintln(s.ErrOut, render.Clean(one.Severity+": "+one.Message))
	}
}

func (o *deliveryRenderOptions) print(items []krm.Item) error {
	if o.format == render.FormatJSON {
		all := make([]json.RawMessage, len(items))
		for i, item := range items {
			all[i] = json.RawMessage(item.Manifest)
		}

		_, err := render.PrintMachine(o.Out, render.FormatJSON, map[string]any{"apiVersion": "v1", "kind": "List", "items": all})

		return err
	}

	var out bytes.Buffer

	for _, item := range items {
		data, err := yaml.JSONToYAML([]byte(item.Manifest))
		if err != nil {
			return command.Blind("cannot write %s: %w", item, err)
		}

		_, _ = out.WriteString("---\n")
		_, _ = out.Write(data)
	}

	_, err := o.Out.Write(out.Bytes())

	return err
}
