package fields

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const fieldsUndoExamples = `  # Put back what was moved last
  arbor fields undo --last

  # What is in a file, and what that would do
  arbor fields undo --record web.jsonl --dry-run`

type fieldsUndoOptions struct {
	source.Scope

	connect migratorConnector
	output  output.Flags
	dryRun  bool
	last    bool
	record  string
	files   undoFolder
}

func newFieldsUndo(streams genericiooptions.IOStreams, connect migratorConnector) *cobra.Command {
	o := &fieldsUndoOptions{Scope: source.NewScope(streams, nil), connect: connect, files: newUndoFolder(os.Getenv)}
	cmd := &cobra.Command{
		Use:   "undo --record FILE | --last",
		Short: "Put back what a migration moved",
		Long: `Put the ownership of fields back to where it was before a run of "arbor fields
migrate". What others did since then stays as it is. It may be repeated: what is
back already is not written. A file that was used is kept with .undone after its
name, so that --last goes back one run more each time.

Exit codes: 0 it is put back, or there was nothing to put back, 1 an object could
not be changed, 2 the file or the cluster could not be read.`,
		Example: fieldsUndoExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	o.output.Add(cmd, output.Table)
	command.AddDryRun(cmd.Flags(), &o.dryRun, "have the server check everything, and change nothing")
	cmd.Flags().BoolVar(&o.last, "last", false, "undo the last run that was not undone")
	cmd.Flags().StringVar(&o.record, "record", "", "file that the migration made")
	o.Flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return command.AcceptAs(cmd, map[string]string{"undo-file": "record"})
}

func (o *fieldsUndoOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	name, err := o.file()
	if err != nil {
		return err
	}

	records, err := ownership.ReadRecords(name)
	if err != nil {
		return command.Blind("%w", err)
	}

	m, err := o.connect(o.Flags, ownership.Options{DryRun: o.dryRun})
	if err != nil {
		return command.Blind("%w", err)
	}

	report := MigrationReport{Migrations: []MigrationView{}, DryRun: o.dryRun}
	stop := report.progress(o.ErrOut, "putting back", len(records))

	for _, r := range slices.Backward(records) {
		report.add(undo(ctx, m, r))
	}

	stop()

	if report.Summary.Failed == 0 && !o.dryRun {
		if err := os.Rename(name, name+undoneSuffix); err != nil {
			return command.Blind("everything is back, but the file still has its name: %w", err)
		}
	}

	if err := report.print(o.Out, o.ErrOut, &o.output); err != nil {
		return err
	}

	if report.Summary.Failed > 0 {
		return command.Found()
	}

	return nil
}

func undo(ctx context.Context, m Migrator, r ownership.Record) MigrationView {
	v := MigrationView{
		Object: identity.Ref{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name},
		Scopes: r.Scopes,
	}

	undone, err := m.Undo(ctx, r)
	v.Changed, v.Skipped = err == nil && undone.Skipped == "", undone.Skipped
	v.Notes = owners.MoveNotes(undone.Notes)

	if v.Changed {
		v.Moves = owners.MovedViews(undone.Moves)
	}

	if text := v.whySkipped(); text != "" {
		v.Notes = append(v.Notes, v.remark(text))
	}

	return v.ended(err)
}

// file is the one to undo.
func (o *fieldsUndoOptions) file() (string, error) {
	switch {
	case o.last == (o.record != ""):
		return "", command.Blind("cannot tell what to undo: use either --last or --record FILE")
	case o.record != "":
		return o.record, nil
	}

	name, err := o.files.last()
	if err != nil {
		return "", command.Blind("%w", err)
	}

	return name, nil
}
