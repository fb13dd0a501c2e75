package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
)

// A migrator moves the ownership of fields in a cluster.
type migrator interface {
	// Migrate moves what is asked for in one object. The outcome is complete
	// also if there is nothing to move.
	Migrate(ctx context.Context, target ObjectRef, request migration) (outcome, error)
	// Undo puts back what a migration moved.
	Undo(ctx context.Context, record undoRecord, dryRun bool) (outcome, error)
}

// A migratorConnector finds a cluster by kubectl's rules.
type migratorConnector func(flags *genericclioptions.ConfigFlags) (migrator, error)

// A migration is what to move.
type migration struct {
	fields.Request

	// Desired is what the manager is about to apply, nil if that is not known.
	Desired map[string]any
	// DryRun has the server check everything and keep nothing.
	DryRun bool
}

// An outcome is what was moved, or would be in a dry run.
type outcome struct {
	// Changed says whether something was written, or would be.
	Changed bool
	Moves   []fields.Move
	Notes   []fields.Note
	// Record undoes it. It means nothing if nothing changed.
	Record fields.Record
}

const fieldsMigrateExamples = `  # Give eno the init containers that it has a part of
  arbor fields migrate deploy/web --scope spec.template.spec.initContainers --to eno

  # See first what would happen
  arbor fields plan deploy/web --scope spec.template.spec.initContainers --to eno
  arbor fields migrate deploy/web --scope spec.template.spec.initContainers --to eno --dry-run

  # All Deployments with a label
  arbor fields migrate deploy -l app=web --scope spec.template.spec.initContainers --to eno

  # Put back what was moved last
  arbor fields undo --last`

type fieldsMigrateOptions struct {
	ownersOptions
	moveOptions

	connect migratorConnector
	dryRun  bool
	all     bool
	record  string
	files   undoFolder
}

func newFieldsMigrate(streams genericiooptions.IOStreams, find finder, connect migratorConnector) *cobra.Command {
	o := &fieldsMigrateOptions{ownersOptions: newOwnersOptions(streams, find), connect: connect, files: newUndoFolder(os.Getenv)}
	cmd := &cobra.Command{
		Use:   "migrate KIND/NAME... --scope SCOPE --to MANAGER",
		Short: "Move the ownership of fields to a manager",
		Long: `Move the ownership of a part of objects to a manager that applies, so that it can
remove what it no longer names. Values are not changed, only who owns them. "arbor
fields plan" shows beforehand what would move.

What undoes it is kept as a file: $XDG_STATE_HOME/arbor/undo, or
~/.local/state/arbor/undo, has one for each object, or --record names it.

Exit codes: 0 it is moved, or there was nothing to move, 1 an object was not found
or could not be changed, 2 it could not look, or the scope is never moved.`,
		Example: fieldsMigrateExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args

			return o.run(cmd.Context())
		},
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: table, json or yaml")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "have the server check everything, and change nothing")
	cmd.Flags().BoolVar(&o.all, "all", false, "all objects of a kind, if there are neither names nor labels")
	cmd.Flags().StringVar(&o.record, "record", "", "file to keep what undoes it in, for one object")
	o.addMoveFlags(cmd)
	o.addSelectionFlags(cmd)
	o.addClusterFlags(cmd.Flags())

	return cmd
}

func (o *fieldsMigrateOptions) run(ctx context.Context) error {
	request, wishes, err := o.check()
	if err != nil {
		return err
	}

	all, end, err := o.gather(ctx)
	if err != nil {
		return err
	}

	if len(all) > 1 && o.record != "" {
		return blind("--record names one file, and there are %d objects: leave it out, and each has its own", len(all))
	}

	m, err := o.connect(o.flags)
	if err != nil {
		return blind("%w", err)
	}

	report := MigrationReport{Migrations: []MigrationView{}, DryRun: o.dryRun}

	for _, thing := range all {
		v := o.migrate(ctx, m, thing.ObjectRef, request, wishes)
		report.add(v)
	}

	if err := report.print(o.Out, o.ErrOut, o.format); err != nil {
		return err
	}

	if end == nil && report.Summary.Failed > 0 {
		return found()
	}

	return end
}

// check finds wrong usage.
func (o *fieldsMigrateOptions) check() (r fields.Request, wishes []map[string]any, err error) {
	if err := checkFormat(o.format, formatTable, formatText, formatJSON, formatYAML); err != nil {
		return r, nil, err
	}

	names, err := parseNames(o.args)
	if err != nil {
		return r, nil, blind("%w", err)
	}

	if len(names) == 1 && names[0].name == "" && o.selector == "" && !o.all {
		return r, nil, blind("cannot migrate every %s without being told so: add names, labels with -l, or --all", o.args[0])
	}

	if o.within == "" {
		return r, nil, blind("no part to migrate: name one with --scope, like spec.template.spec.initContainers")
	}

	within, err := o.parseWithin()
	if err != nil {
		return r, nil, err
	}

	if r, err = o.request(within); err != nil {
		return r, nil, err
	}

	wishes, err = o.wishes(o.In)

	return r, wishes, err
}

// migrate changes one object. The file is made first: nothing is moved that
// could not be undone.
func (o *fieldsMigrateOptions) migrate(ctx context.Context, m migrator, target ObjectRef, request fields.Request, wishes []map[string]any) MigrationView {
	v := MigrationView{Object: target, Scope: request.Scope, To: request.To}
	what := migration{Request: request, DryRun: o.dryRun}

	if wishes != nil {
		wish, err := wishFor(target, wishes)
		if err != nil {
			return v.failed(err)
		}

		what.Desired = wish
	}

	if o.dryRun {
		out, err := m.Migrate(ctx, target, what)

		return v.with(out, err)
	}

	file, err := o.files.create(o.record, target)
	if err != nil {
		return v.failed(err)
	}

	out, err := m.Migrate(ctx, target, what)
	v = v.with(out, err)

	if err != nil || !out.Changed {
		file.discard()

		return v
	}

	v.Record = file.name
	if err := file.write(undoRecord{Object: target, Scope: request.Scope, Record: out.Record}); err != nil {
		return v.failed(fmt.Errorf("it was moved, but %w", err))
	}

	return v
}
