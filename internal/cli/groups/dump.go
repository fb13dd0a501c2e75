package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/clusterdump"
	"github.com/arbor-control/arbor/internal/decide/scheduling"
)

const groupsDumpExamples = `  # Write down what the scheduler sees now
  arbor groups dump > cluster.yaml

  # Ask about it later, elsewhere, without a cluster
  arbor groups explain training --from cluster.yaml
  arbor groups fit -f gang.yaml --from cluster.yaml

  # As JSON, which is read faster if the cluster is large
  arbor groups dump -o json | gzip > cluster.json.gz`

type groupsDumpOptions struct {
	source.Scope

	scheduling Scheduling
	format     string
}

func newGroupsDump(streams genericiooptions.IOStreams, connect source.Connector, s Scheduling) *cobra.Command {
	o := &groupsDumpOptions{Scope: source.NewScope(streams, connect), scheduling: s}
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write what scheduling looks at to standard output",
		Long: `Write everything that scheduling looks at to standard output, of all namespaces, as
a list: nodes, pods, PodGroups, priority classes, volumes and their claims, devices,
disruption budgets, and the selectors of services and workloads. 'arbor groups fit'
and 'arbor groups explain' read it with --from.

Only what decides on places is in it. Of pods it has labels, resources, host ports,
images, claims and the rules of where they may be. It has no Secrets and ConfigMaps
and does not name them; no environment, arguments, commands and probes; no volumes
but claims and disks; no parameters of storage classes, volumes and devices; no
messages and no managedFields; and no annotations but ` + scheduling.GroupAnnotation + `
and those of volumes and claims. Names of objects, nodes and images, and labels, are as
they are. Kinds that the cluster does not serve are left out.

Exit codes: 0 it is written, 2 it could not look.`,
		Example: groupsDumpExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", render.FormatYAML, "output format: yaml or json")
	o.Flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *groupsDumpOptions) run(ctx context.Context) error {
	if err := render.CheckFormat(o.format, render.FormatYAML, render.FormatJSON); err != nil {
		return err
	}
	if *o.Flags.Namespace != "" {
		return command.Blind("a dump has all namespaces, because pods of all of them take room on nodes: leave out -n")
	}
	list, err := o.Connect(o.Flags, o.ErrOut)
	if err != nil {
		return command.Blind("%w", err)
	}
	var all []map[string]any
	for _, resource := range o.scheduling.Kinds() {
		objects, err := list(ctx, source.Query{Resource: resource})
		if errors.Is(err, source.ErrNotInstalled) {
			_, _ = fmt.Fprintf(o.ErrOut, "Note: the cluster has no %s of %s\n", resource.Resource, resource.GroupVersion())

			continue
		}
		if err != nil {
			return command.Blind("%w", err)
		}
		for _, obj := range objects {
			all = append(all, clusterdump.Trim(obj))
		}
	}
	if err := writeList(o.Out, o.format, all); err != nil {
		return command.Blind("cannot write the dump: %w", err)
	}

	return nil
}

// writeList writes objects one by one. Its end says that it is whole: what is
// cut off is no list.
func writeList(w io.Writer, format string, objects []map[string]any) error {
	if format == render.FormatJSON {
		return writeJSONList(w, objects)
	}
	if len(objects) == 0 {
		_, err := fmt.Fprint(w, "apiVersion: v1\nitems: []\nkind: List\n")

		return err
	}
	if _, err := fmt.Fprint(w, "apiVersion: v1\nitems:\n"); err != nil {
		return err
	}
	for _, obj := range objects {
		text, err := yaml.Marshal([]any{obj})
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, "kind: List\n")

	return err
}

func writeJSONList(w io.Writer, objects []map[string]any) error {
	separator := `{"apiVersion": "v1", "kind": "List", "items": [` + "\n"
	for _, obj := range objects {
		text, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, text); err != nil {
			return err
		}
		separator = ",\n"
	}
	if len(objects) == 0 {
		if _, err := fmt.Fprint(w, separator); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, "\n]}\n")

	return err
}
