package pools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/check"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const poolsCheckExamples = `  # Find what is wrong with the pools of all namespaces, or of one
  arbor pools check
  arbor pools check -n network

  # The same for what a cluster held when it was saved
  kubectl get subnetpools,subnets,subnetclaims,subnetpoolclaims -A -o yaml > saved.yaml
  arbor pools check --from saved.yaml

  # As JSON, for a report
  arbor pools check -o json`

type poolsCheckOptions struct {
	poolScope

	output output.Flags
	strict bool
}

// newPoolsCheck returns the command that finds what is wrong with pools, Subnets
// and claims together.
func newPoolsCheck(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &poolsCheckOptions{poolScope: poolScope{source.NewScope(streams, connect)}}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find overlaps, orphans and statuses that are not true",
		Long: `Look at all pools, Subnets and claims together, in all namespaces unless -n names
one, and list what is wrong:

  overlaps  two who have the same addresses
  orphans   something that was taken for, or from, what is gone
  closed    pools that hand out no new blocks, now or after an upgrade
  lies      a status that says something else than a recount

The cluster may be at work: what seems wrong is looked at a second time, and only
what is still wrong is listed. Nothing is changed.

With --from, files take the place of the cluster, and what is not in them is gone.
To check manifests before they are applied, use lint.

-o name lists the objects with findings.

Exit codes: 0 nothing wrong, 1 errors were found, or warnings with --strict, 2 no such
namespace, or the cluster or a file could not be read. --exit-code=false turns 1 into 0.`,
		Example: poolsCheckExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	o.output.Add(cmd, output.Table, output.Name)
	o.output.AddWatch(cmd)
	o.output.AddExitCode(cmd, true, "an error is found")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with 1 for warnings too")
	o.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *poolsCheckOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	if o.AllNamespaces {
		*o.Flags.Namespace = ""
	}
	if err := o.CheckWatch(o.output.Watch); err != nil {
		return err
	}

	return o.output.Run(ctx, &o.IOStreams, o.once)
}

func (o *poolsCheckOptions) once(ctx context.Context) error {
	s, wrong, bad, err := o.read(ctx)
	if err != nil {
		return command.Blind("%w", err)
	}

	// The error is printed. Whether anything is wrong in what could not be read is not known.
	if bad && len(wrong) == 0 {
		return &command.ExitError{Code: command.ExitBlind}
	}

	report := ipam.NewCheckReport(s, wrong)
	if err := o.print(ctx, report); err != nil {
		return err
	}

	if bad {
		return &command.ExitError{Code: command.ExitBlind}
	}

	return o.output.Found(report.Summary.Errors > 0 || o.strict && report.Summary.Warnings > 0)
}

// read returns the objects of the cluster or of files, and what is wrong with them. bad is true
// if a file could not be read; the error is printed then.
func (o *poolsCheckOptions) read(ctx context.Context) (s *findings.Survey, wrong []show.Finding, bad bool, err error) {
	if o.Offline() {
		return o.saved(ctx)
	}

	return o.cluster(ctx)
}

func (o *poolsCheckOptions) cluster(ctx context.Context) (s *findings.Survey, wrong []show.Finding, bad bool, err error) {
	list, err := o.Connect(o.Flags, o.ErrOut)
	if err != nil {
		return nil, nil, false, err
	}

	s, wrong, err = check.SurveyCluster(ctx, list, *o.Flags.Namespace)
	if errors.Is(err, source.ErrNotInstalled) {
		err = fmt.Errorf("the SubnetPool API (%s) is %w", v1alpha1.GroupVersion, err)
	}

	return s, wrong, false, err
}

// saved reads an estate from files. bad is true if a part of them could not be
// read, which is then said.
func (o *poolsCheckOptions) saved(ctx context.Context) (s *findings.Survey, wrong []show.Finding, bad bool, err error) {
	files, bad, err := o.Files(ctx)
	if err != nil {
		return nil, nil, bad, err
	}

	s = &findings.Survey{}

	for _, f := range files {
		for _, d := range f.Documents {
			o.take(s, d.Object)
		}
	}

	found := s.Inspect()

	return s, found, bad, nil
}

// take adds an object of a file to an estate, if it is asked for. One without a
// namespace may be meant for any.
func (o *poolsCheckOptions) take(s *findings.Survey, obj map[string]any) {
	ref := identity.RefOf(obj)
	group, _, _ := strings.Cut(ref.APIVersion, "/")

	if ns := *o.Flags.Namespace; ns != "" && ref.Namespace == "" {
		(&unstructured.Unstructured{Object: obj}).SetNamespace(ns)
	} else if ns != "" && ref.Namespace != ns {
		return
	}

	s.Add(schema.GroupKind{Group: group, Kind: ref.Kind}, obj)
}

func (o *poolsCheckOptions) print(ctx context.Context, r ipam.CheckReport) error {
	if r.Summary.Empty() && *o.Flags.Namespace != "" {
		if err := o.ExplainEmpty(ctx, *o.Flags.Namespace); err != nil {
			return err
		}
	}

	if done, err := o.output.Print(o.Out, ipam.CheckKind, r); done {
		return err
	}

	if len(r.Findings) > 0 {
		o.output.Table(o.Out, render.FindingRows(r.Findings))
	}

	conclusion := "nothing wrong"
	if len(r.Findings) > 0 {
		conclusion = render.FindingCount(r.Summary.Errors, r.Summary.Warnings, render.StyleOf(o.ErrOut, os.Getenv))
	}

	_, err := fmt.Fprintf(o.ErrOut, "%s: %s\n", r.Summary, conclusion)

	return err
}
