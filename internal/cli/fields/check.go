package fields

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const fieldsCheckExamples = `  # Does eno own all of the init containers?
  arbor fields owned deploy/web --scope spec.template.spec.initContainers --manager eno

  # Which Deployments have containers that other managers own as well?
  arbor fields owned deploy -A --scope spec.template.spec.containers --manager argocd-controller

  # In a script
  arbor fields owned deploy/web --scope spec.template --manager eno -o json | jq '.checks[].otherManagers'`

type fieldsCheckOptions struct {
	ownersOptions

	manager string
}

func newFieldsCheck(streams genericiooptions.IOStreams, find finder) *cobra.Command {
	o := &fieldsCheckOptions{ownersOptions: newOwnersOptions(streams, find)}
	cmd := &cobra.Command{
		Use:     "owned KIND/NAME... --scope SCOPE --manager MANAGER",
		Aliases: []string{"check"},
		Short:   "Check whether one manager owns all of a part",
		Long: `Check whether one manager owns a part of an object by server-side apply, and no other manager
does. Fields without an owner do not count, and neither do fields that were written through
a subresource. Fields that the manager itself wrote without apply belong to another manager
for the server.

Exit codes: 0 it owns all of it, 1 it does not, or there is no such part, 2 there is no such
object, or the cluster or a file could not be read.`,
		Example: fieldsCheckExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Table)
	o.output.AddExitCode(cmd, true, "the manager does not own all of it")
	cmd.Flags().StringVar(&o.manager, "manager", "", "the manager that should own it")
	o.addOwnersFlags(cmd)

	return command.AcceptAs(cmd, map[string]string{"field-manager": "manager"})
}

func (o *fieldsCheckOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	if o.manager == "" {
		return command.Blind("no manager to check: name one with --manager")
	}

	within, err := o.parseWithin()
	if err != nil {
		return err
	}

	all, end, err := o.gather(ctx)
	if err != nil {
		return err
	}

	report := owners.OwnershipReport{Checks: []owners.OwnershipCheck{}}
	for _, thing := range all {
		report.Add(owners.NewCheck(thing, within, o.manager))
	}

	if err := o.print(report); err != nil {
		return err
	}

	if end == nil {
		return o.output.Found(report.Summary.FullyOwned < report.Summary.Checked)
	}

	return end
}

func (o *fieldsCheckOptions) print(r owners.OwnershipReport) error {
	if done, err := o.output.Print(o.Out, "FieldOwnership", r); done {
		return err
	}

	rows := [][]string{{render.ColumnKind, render.ColumnNamespace, "NAME", "OWNED", "OTHER MANAGERS"}}
	for _, c := range r.Checks {
		rows = append(rows, []string{c.Object.Kind, c.Object.Namespace, c.Object.Name, c.Verdict(), strings.Join(c.OtherManagers, ", ")})
	}

	if len(r.Checks) > 0 {
		o.output.Table(o.Out, rows)
	}

	what := "the whole object"
	if o.within != "" {
		what = o.within
	}

	_, err := fmt.Fprintf(o.ErrOut, "%s owns all of %s in %d of %s\n",
		render.Clean(o.manager), render.Clean(what), r.Summary.FullyOwned, show.Count(r.Summary.Checked, "object"))

	return err
}
