package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	"github.com/arbor-control/arbor/internal/cli/check"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const auditExamples = `  # Find what is already wrong in the cluster
  arbor audit

  # Only one namespace
  arbor audit -n training

  # As JSON, for a report
  arbor audit -o json`

type auditOptions struct {
	genericiooptions.IOStreams

	flags   *genericclioptions.ConfigFlags
	connect source.Connector
	output  output.Flags
	strict  bool
	all     bool
}

// New returns the command that checks the objects of a live cluster.
func New(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &auditOptions{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), connect: connect}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find what is already wrong in a cluster",
		Long: `Check the objects of a live cluster, in all namespaces unless -n names one, and
list those that admission would refuse today: objects that were stored before
the rule existed, or while admission was off. Of address pools it lists all that
"arbor pools check" does, and of workloads the containers that somebody applies
and could not remove, because others hold a part of them, and in the end who
blocks whom. Nothing is changed.

Parts of Arbor whose API is not installed are skipped.

-o name lists the objects with findings.

Exit codes: 0 nothing wrong, 1 errors were found, or warnings with --strict, 2 the
cluster could not be read. --exit-code=false turns 1 into 0.`,
		Example: auditExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	o.output.Add(cmd, output.Table, output.Name)
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, true, "an error is found")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with 1 for warnings too")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look in all namespaces, which is the default without -n")
	o.flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *auditOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	return o.output.Run(ctx, &o.IOStreams, o.once)
}

func (o *auditOptions) once(ctx context.Context) error {
	list, err := o.connect(o.flags, o.ErrOut)
	if err != nil {
		return command.Blind("%w", err)
	}

	namespace := *o.flags.Namespace
	if o.all {
		namespace = ""
	}
	report, err := audit(ctx, list, namespace)
	if err != nil {
		return command.Blind("%w", err)
	}

	if err := o.print(report); err != nil {
		return err
	}

	return o.output.Found(report.Summary.Errors > 0 || o.strict && report.Summary.Warnings > 0)
}

// A part of the audit looks at one of Arbor's trees. It returns how many
// objects it saw, by kind, and what is wrong with them.
type part struct {
	name string
	look func(ctx context.Context, list source.Lister, namespace string) (seen []findings.AuditPart, findings []show.Finding, err error)
}

var parts = []part{
	{name: v2alpha2.PodGroupKind, look: auditPodGroups},
	{name: v1alpha1.SubnetPoolKind, look: auditPools},
	{name: workloadKind, look: auditOwnership},
}

func auditPodGroups(ctx context.Context, list source.Lister, namespace string) ([]findings.AuditPart, []show.Finding, error) {
	objects, err := list(ctx, source.Query{Resource: source.PodGroupResource, Namespace: namespace})

	var out []show.Finding
	for _, obj := range objects {
		out = append(out, findings.PodGroup(obj)...)
	}

	return []findings.AuditPart{{Kind: v2alpha2.PodGroupKind, Checked: len(objects)}}, out, err
}

func auditPools(ctx context.Context, list source.Lister, namespace string) ([]findings.AuditPart, []show.Finding, error) {
	s, wrong, err := check.SurveyCluster(ctx, list, namespace)
	if err != nil {
		return nil, nil, err
	}

	return s.Seen(), wrong, nil
}

// An AuditReport is the result of arbor audit.
type AuditReport struct {
	Findings []show.Finding `json:"findings"`
	// Blocks are who blocks whom, of workloads.
	Blocks  []owners.Block       `json:"blocks"`
	Parts   []findings.AuditPart `json:"parts"`
	Summary AuditSummary         `json:"summary"`
}

// Refs are the objects with findings.
func (r AuditReport) Refs() []identity.Ref { return show.ObjectsOf(r.Findings) }

// AuditSummary counts the findings.
type AuditSummary struct {
	Checked  int `json:"checked"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
}

// audit runs all parts.
func audit(ctx context.Context, list source.Lister, namespace string) (AuditReport, error) {
	r := AuditReport{Findings: []show.Finding{}}

	for _, p := range parts {
		seen, wrong, err := p.look(ctx, list, namespace)
		if errors.Is(err, source.ErrNotInstalled) {
			r.Parts = append(r.Parts, findings.AuditPart{Kind: p.name, Skipped: err.Error()})

			continue
		}

		if err != nil {
			return r, err
		}

		r.Findings = append(r.Findings, wrong...)
		r.Parts = append(r.Parts, seen...)

		for _, kind := range seen {
			r.Summary.Checked += kind.Checked
		}
	}

	r.Blocks = owners.BlocksOf(r.Findings)
	r.Summary.Errors, r.Summary.Warnings = show.CountSeverities(r.Findings, func(f show.Finding) show.Severity { return f.Severity })

	return r, nil
}

func (o *auditOptions) print(r AuditReport) error {
	if done, err := o.output.Print(o.Out, "AuditReport", r); done {
		return err
	}

	for _, p := range r.Parts {
		if p.Skipped != "" {
			if _, err := fmt.Fprintf(o.ErrOut, "%s skipped: %s\n", p.Kind, p.Skipped); err != nil {
				return err
			}
		}
	}

	if len(r.Findings) > 0 {
		o.output.Table(o.Out, render.FindingRows(r.Findings))
	}

	if len(r.Blocks) > 0 {
		_, _ = fmt.Fprintln(o.Out)
		o.output.Table(o.Out, blockTable(r.Blocks))
	}

	_, err := fmt.Fprintln(o.ErrOut, auditConclusion(r, render.StyleOf(o.ErrOut, os.Getenv)))

	return err
}

func auditConclusion(r AuditReport, s render.Style) string {
	var seen string

	for _, p := range r.Parts {
		if p.Skipped == "" {
			if seen != "" {
				seen += ", "
			}

			seen += show.Count(p.Checked, p.Kind)
		}
	}

	switch {
	case seen == "":
		return "nothing to audit"
	case len(r.Findings) == 0:
		return "no problems in " + seen
	}

	return render.FindingCount(r.Summary.Errors, r.Summary.Warnings, s) + " in " + seen
}

// blockTable has one row for each two managers.
func blockTable(all []owners.Block) [][]string {
	rows := [][]string{{"BLOCKED", "BY", "WORKLOADS", "PARTIAL", "STAY"}}
	for _, b := range all {
		rows = append(rows, []string{b.Manager, b.By.String(), strconv.Itoa(b.Workloads), strconv.Itoa(b.Partial), strconv.Itoa(b.Kept)})
	}

	return rows
}
