package fields

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const fieldsCheckExamples = `  # Does eno own all of the init containers?
  arbor fields check deploy/web --scope spec.template.spec.initContainers --manager eno

  # Which Deployments have containers that others own as well?
  arbor fields check deploy -A --scope spec.template.spec.containers --manager argocd-controller

  # In a script
  arbor fields check deploy/web --scope spec.template --manager eno -o json | jq '.checks[].otherManagers'`

type fieldsCheckOptions struct {
	ownersOptions

	manager string
}

func newFieldsCheck(streams genericiooptions.IOStreams, find finder) *cobra.Command {
	o := &fieldsCheckOptions{ownersOptions: newOwnersOptions(streams, find)}
	cmd := &cobra.Command{
		Use:   "check KIND/NAME... --scope SCOPE --manager MANAGER",
		Short: "Check whether one manager owns all of a part",
		Long: `Check whether a part of an object belongs to one manager that applies, and to
nobody else. Fields that nobody owns do not count, and neither does what was
written through a subresource. What the manager itself wrote otherwise than by
apply is somebody else's to the server.

Exit codes: 0 it owns all of it, 1 it does not, or there is no such part or
object, 2 it could not look.`,
		Example: fieldsCheckExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args

			return o.run(cmd.Context())
		},
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", render.FormatTable, "output format: table, json or yaml")
	cmd.Flags().StringVar(&o.manager, "manager", "", "the manager that should own it")
	o.addOwnersFlags(cmd)

	return command.AcceptAs(cmd, map[string]string{"field-manager": "manager"})
}

func (o *fieldsCheckOptions) run(ctx context.Context) error {
	if err := render.CheckFormat(o.format, render.FormatTable, render.FormatText, render.FormatJSON, render.FormatYAML); err != nil {
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

	report := OwnershipReport{Checks: []OwnershipCheck{}}
	for _, thing := range all {
		report.add(newOwnershipCheck(thing, within, o.manager))
	}

	if err := o.print(report); err != nil {
		return err
	}

	if end == nil && report.Summary.FullyOwned < report.Summary.Checked {
		return command.Found()
	}

	return end
}

// An OwnershipReport is the result of arbor fields check.
type OwnershipReport struct {
	Checks  []OwnershipCheck `json:"checks"`
	Summary OwnershipSummary `json:"summary"`
}

// An OwnershipCheck says what a manager has of a part of one object.
type OwnershipCheck struct {
	Object  identity.Ref `json:"object"`
	Scope   fields.Scope `json:"scope"`
	Manager string       `json:"manager"`
	// ScopeExists says whether the object has that part.
	ScopeExists bool `json:"scopeExists"`
	FullyOwned  bool `json:"fullyOwned"`
	// OtherManagers have something of it too.
	OtherManagers []string `json:"otherManagers"`
	// OwnUpdates says that the manager itself wrote some of it without apply.
	OwnUpdates bool `json:"ownUpdates"`
	// Subresources are entries that do not count.
	Subresources []fields.Identity `json:"subresources,omitempty"`
	// Lifted are the parts that stand for the scope, which is inside of them.
	Lifted []string `json:"lifted,omitempty"`
}

// OwnershipSummary counts objects.
type OwnershipSummary struct {
	Checked    int `json:"checked"`
	FullyOwned int `json:"fullyOwned"`
}

func newOwnershipCheck(thing *owners.Object, within fields.Scope, manager string) OwnershipCheck {
	found := thing.Tree.CheckOwnership(within, manager)
	c := OwnershipCheck{
		Object: thing.Ref, Scope: within, Manager: manager,
		ScopeExists: found.ScopeExists, FullyOwned: found.FullyOwned, OwnUpdates: found.OwnUpdates,
		OtherManagers: append([]string{}, found.OtherManagers...), Subresources: found.Subresources,
	}

	for _, p := range found.Lifted {
		c.Lifted = append(c.Lifted, fields.FormatPath(p))
	}

	return c
}

func (r *OwnershipReport) add(c OwnershipCheck) {
	r.Checks = append(r.Checks, c)
	r.Summary.Checked++

	if c.FullyOwned {
		r.Summary.FullyOwned++
	}
}

// verdict is the check in a few words.
func (c OwnershipCheck) verdict() string {
	switch {
	case !c.ScopeExists:
		return "not there"
	case c.FullyOwned:
		return "yes"
	case c.OwnUpdates:
		return "no, not all of it is applied"
	case len(c.OtherManagers) == 0 && len(c.Subresources) > 0:
		return "no, " + subresourceNames(c.Subresources) + " has it"
	case len(c.OtherManagers) == 0:
		return "no, nobody owns it"
	default:
		return "no"
	}
}

// subresourceNames are as arbor fields show has them.
func subresourceNames(all []fields.Identity) string {
	texts := make([]string, len(all))
	for i, id := range all {
		texts[i] = id.Manager + "/" + id.Subresource
	}

	return strings.Join(texts, " and ")
}

func (o *fieldsCheckOptions) print(r OwnershipReport) error {
	if done, err := render.PrintMachine(o.Out, o.format, r); done {
		return err
	}

	rows := [][]string{{render.ColumnKind, render.ColumnNamespace, "NAME", "OWNED", "OTHER MANAGERS"}}
	for _, c := range r.Checks {
		rows = append(rows, []string{c.Object.Kind, c.Object.Namespace, c.Object.Name, c.verdict(), strings.Join(c.OtherManagers, ", ")})
	}

	if len(r.Checks) > 0 {
		render.WriteTable(o.Out, rows)
	}

	what := "the whole object"
	if o.within != "" {
		what = o.within
	}

	_, err := fmt.Fprintf(o.ErrOut, "%s owns all of %s in %d of %s\n",
		render.Clean(o.manager), render.Clean(what), r.Summary.FullyOwned, show.Count(r.Summary.Checked, "object"))

	return err
}
