package lint

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/linter"
	"github.com/arbor-control/arbor/internal/manifest"
)

const lintExamples = `  # Check one file, or everything below a folder
  arbor lint -f podgroup.yaml
  arbor lint -f deploy/

  # Check what another tool renders
  helm template ./chart | arbor lint -f -

  # In CI: fail on warnings too, and keep the findings as JSON
  arbor lint -f deploy/ --strict -o json > findings.json

  # In GitHub Actions: findings as annotations of the lines, or as SARIF for code scanning
  arbor lint -f deploy/ -o github
  arbor lint -f deploy/ -o sarif > findings.sarif`

type lintOptions struct {
	genericiooptions.IOStreams

	paths  []string
	output output.Flags
	strict bool
}

// New returns the command that checks manifests without a cluster.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &lintOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "lint -f FILE|DIR|-",
		Short: "Check manifests offline, as admission would",
		Long: `Check manifests without a cluster, with the validation that the API server and
Arbor's admission apply: schema and unknown fields of all kinds of Arbor, the tree
that subgroups form, and pools, Subnets and claims across all files.

Every finding is printed with its file and line. Documents of kinds that Arbor
does not know are counted and not checked, except that a StatefulSet whose pods
would wait for each other, because its PodGroup needs several of them at once, is
reported.

Exit codes: 0 nothing wrong, 1 errors were found, or warnings with --strict, 2 something
could not be read. --exit-code=false turns 1 into 0.`,
		Example: lintExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.paths = append(o.paths, args...)

			return o.run(cmd.Context())
		},
	}

	cmd.Flags().StringArrayVarP(&o.paths, "filename", "f", nil, "file or folder to check, - for standard input; may be repeated")
	o.output.Add(cmd, output.Text, output.JSON, output.YAML, formatSARIF, formatGitHub)
	o.output.AddExitCode(cmd, true, "an error is found")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with 1 for warnings too")
	command.CheckUsage(cmd, cobra.ArbitraryArgs)

	return cmd
}

func (o *lintOptions) run(ctx context.Context) error {
	if o.output.Is(output.Table) {
		o.output.Format = output.Text // as earlier releases called it
	}
	if err := o.output.Check(); err != nil {
		return err
	}

	if len(o.paths) == 0 {
		return command.Blind("nothing to check: name files or folders with -f, or - for standard input")
	}

	report, err := o.lint(ctx)
	if err != nil {
		return command.Blind("interrupted: %w", err)
	}

	if err := o.print(report); err != nil {
		return err
	}

	return o.exit(report)
}

func (o *lintOptions) lint(ctx context.Context) (linter.Report, error) {
	sources := manifest.Sources(o.paths, o.In)

	var done atomic.Int64

	stop := render.Progress(o.ErrOut, func() string {
		return fmt.Sprintf("checking files, %d of %d", done.Load(), len(sources))
	})
	defer stop()

	l := linter.New()

	files, err := manifest.Each(ctx, sources, func(f manifest.File) linter.FileReport {
		defer done.Add(1)

		return l.File(ctx, f)
	})

	return linter.Combine(files), err
}

func (o *lintOptions) print(r linter.Report) error {
	if done, err := o.output.Print(o.Out, "LintReport", r); done {
		return err
	}

	if done, err := printAnnotations(o.Out, o.output.Format, r); done {
		return err
	}

	s := render.StyleOf(o.Out, os.Getenv)
	w := bufio.NewWriter(o.Out)

	for _, f := range r.Findings {
		if _, err := fmt.Fprintln(w, render.FindingLine(f, s)); err != nil {
			return err
		}
	}

	if err := w.Flush(); err != nil {
		return err
	}

	_, err := fmt.Fprintln(o.ErrOut, r.Summary)

	return err
}

// exit returns how the process should end.
func (o *lintOptions) exit(r linter.Report) error {
	if r.Unreadable {
		return &command.ExitError{Code: command.ExitBlind}
	}

	return o.output.Found(r.Summary.Errors > 0 || o.strict && r.Summary.Warnings > 0)
}
