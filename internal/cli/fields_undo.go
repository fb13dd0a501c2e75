package cli

import (
	"context"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const fieldsUndoExamples = `  # Put back what was moved last
  arbor fields undo --last

  # What is in a file, and what that would do
  arbor fields undo --record web.json --dry-run`

type fieldsUndoOptions struct {
	scope

	connect migratorConnector
	format  string
	dryRun  bool
	last    bool
	record  string
	files   undoFolder
}

func newFieldsUndo(streams genericiooptions.IOStreams, connect migratorConnector) *cobra.Command {
	o := &fieldsUndoOptions{scope: newScope(streams, nil), connect: connect, files: newUndoFolder(os.Getenv)}
	cmd := &cobra.Command{
		Use:   "undo --record FILE | --last",
		Short: "Put back what a migration moved",
		Long: `Put the ownership of fields back to where it was before a migration. What others
did since then stays as it is. A file that was used is kept with .undone after its
name, so that --last goes back one more each time.

Exit codes: 0 it is put back, or there was nothing to put back, 1 it could not be
changed, 2 the file or the cluster could not be read.`,
		Example: fieldsUndoExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: table, json or yaml")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "have the server check everything, and change nothing")
	cmd.Flags().BoolVar(&o.last, "last", false, "undo the last migration that was not undone")
	cmd.Flags().StringVar(&o.record, "record", "", "file that the migration made")
	o.flags.AddFlags(cmd.Flags())
	checkUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *fieldsUndoOptions) run(ctx context.Context) error {
	if err := checkFormat(o.format, formatTable, formatText, formatJSON, formatYAML); err != nil {
		return err
	}

	name, err := o.file()
	if err != nil {
		return err
	}

	record, err := readRecord(name)
	if err != nil {
		return blind("%w", err)
	}

	m, err := o.connect(o.flags)
	if err != nil {
		return blind("%w", err)
	}

	out, err := m.Undo(ctx, record, o.dryRun)
	v := MigrationView{Object: record.Object, Scope: record.Scope, Record: name}.with(out, err)

	if err == nil && !o.dryRun {
		if err := os.Rename(name, name+undoneSuffix); err != nil {
			v = v.failed(err)
		}
	}

	report := MigrationReport{Migrations: []MigrationView{}, DryRun: o.dryRun}
	report.add(v)

	if err := report.print(o.Out, o.ErrOut, o.format); err != nil {
		return err
	}

	if report.Summary.Failed > 0 {
		return found()
	}

	return nil
}

// file is the one to undo.
func (o *fieldsUndoOptions) file() (string, error) {
	switch {
	case o.last == (o.record != ""):
		return "", blind("cannot tell what to undo: use either --last or --record FILE")
	case o.record != "":
		return o.record, nil
	}

	name, err := o.files.last()
	if err != nil {
		return "", blind("%w", err)
	}

	return name, nil
}

func readRecord(name string) (undoRecord, error) {
	var r undoRecord

	data, err := os.ReadFile(name)
	if err != nil {
		return r, bareFile("read", name, err)
	}

	if err := json.Unmarshal(data, &r); err != nil {
		return r, bareFile("read", name, err)
	}

	if r.Object.Name == "" || r.Record.To.Manager == "" {
		return r, bareFile("use", name, errNoRecord)
	}

	return r, nil
}
