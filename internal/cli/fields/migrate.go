package fields

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// A Migrator moves the ownership of fields in a cluster, as
// [ownership.Migrator] does.
type Migrator interface {
	Migrate(ctx context.Context, r ownership.Request) (ownership.Result, error)
	Undo(ctx context.Context, r ownership.Record) (ownership.Undone, error)
}

// A migratorConnector finds a cluster by kubectl's rules.
type migratorConnector func(flags *genericclioptions.ConfigFlags, o ownership.Options) (Migrator, error)

// ConnectMigrator returns the Migrator of the cluster that the flags name.
func ConnectMigrator(flags *genericclioptions.ConfigFlags, o ownership.Options) (Migrator, error) {
	c, err := source.ConnectClient(flags)
	if err != nil {
		return nil, err
	}

	return ownership.New(c, o), nil
}

const fieldsMigrateExamples = `  # Give eno the init containers that it has a part of
  arbor fields migrate deploy/web --scope spec.template.spec.initContainers --to eno

  # See first what would happen
  arbor fields plan deploy/web --scope spec.template.spec.initContainers --to eno
  arbor fields migrate deploy/web --scope spec.template.spec.initContainers --to eno --dry-run

  # All Deployments with a label
  arbor fields migrate deploy -l app=web --scope spec.template.spec.initContainers --to eno

  # What eno needs for its next apply, and that apply; all of it or nothing
  arbor fields migrate deploy/web --to eno --desired web.yaml --apply

  # Put back what was moved last
  arbor fields undo --last`

type fieldsMigrateOptions struct {
	ownersOptions
	moveOptions

	connect migratorConnector
	apply   bool
	dryRun  bool
	all     bool
	record  string
	files   undoFolder
}

func newFieldsMigrate(streams genericiooptions.IOStreams, find finder, connect migratorConnector) *cobra.Command {
	o := &fieldsMigrateOptions{ownersOptions: newOwnersOptions(streams, find), connect: connect, files: newUndoFolder(os.Getenv)}
	cmd := &cobra.Command{
		Use:   "migrate KIND/NAME... --to MANAGER [--scope SCOPE]",
		Short: "Move the ownership of fields to a manager",
		Long: `Move the ownership of a part of objects to a manager that applies, so that it can
remove what it no longer names. Values are not changed, only who owns them. "arbor
fields plan" shows beforehand what would move.

Without --scope it is about the init containers of a workload, or about what its
annotation eno.azure.io/migrate-ownership says.

With --desired, only what the apply of that file needs is moved, and with --apply
it is applied then. If that fails, ownership is put back.

What undoes it is kept in a file before anything is changed, one for each run, in
$XDG_STATE_HOME/arbor/undo or ~/.local/state/arbor/undo, or where --record says.

Exit codes: 0 it is moved, or there was nothing to move, 1 an object was not found
or could not be changed, 2 it could not look, or the scope is never moved.`,
		Example: fieldsMigrateExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Table)
	cmd.Flags().BoolVar(&o.apply, "apply", false, "apply what is in --desired afterwards, as the manager")
	command.AddDryRun(cmd.Flags(), &o.dryRun, "have the server check everything, and change nothing")
	cmd.Flags().BoolVar(&o.all, "all", false, "all objects of a kind, if there are neither names nor labels")
	cmd.Flags().StringVar(&o.record, "record", "", "file to keep what undoes it in")
	o.addMoveFlags(cmd)
	o.addSelectionFlags(cmd)
	o.AddClusterFlags(cmd.Flags())

	return command.AcceptAs(cmd, map[string]string{"manager": "to", "field-manager": "to", "undo-file": "record"})
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

	report, err := o.migrateAll(ctx, all, request, wishes)
	if err != nil {
		return command.Blind("%w", err)
	}

	if err := report.print(o.Out, o.ErrOut, &o.output); err != nil {
		return err
	}

	if end == nil && report.Summary.Failed > 0 {
		return command.Found()
	}

	return end
}

// migrateAll changes one object after the other. An error means that nothing
// was done; what went wrong with an object is in the report.
func (o *fieldsMigrateOptions) migrateAll(ctx context.Context, all []*owners.Object, request fields.Request, wishes []map[string]any) (*MigrationReport, error) {
	options := ownership.Options{Manager: request.To, Mode: request.Mode, DryRun: o.dryRun}
	report := &MigrationReport{Migrations: []MigrationView{}, DryRun: o.dryRun}
	kept := &ownership.Ledger{}

	if !o.dryRun {
		var err error
		if kept, err = o.files.create(o.record); err != nil {
			return nil, err
		}

		options.Journal = kept

		defer func() { report.Record = kept.Close() }()
	}

	m, err := o.connect(o.Flags, options)
	if err != nil {
		return nil, err
	}

	stop := report.progress(o.ErrOut, "migrating", len(all))
	defer stop()

	for _, thing := range all {
		report.add(o.migrate(ctx, m, thing.Ref, request, wishes, kept))
	}

	return report, nil
}

// check finds wrong usage.
func (o *fieldsMigrateOptions) check() (r fields.Request, wishes []map[string]any, err error) {
	if err := o.output.Check(); err != nil {
		return r, nil, err
	}

	names, err := parseNames(o.args)
	if err != nil {
		return r, nil, command.Blind("%w", err)
	}

	if len(names) == 1 && names[0].name == "" && o.selector == "" && !o.all {
		return r, nil, command.Blind("cannot migrate every %s without being told so: add names, labels with -l, or --all", o.args[0])
	}

	if o.apply && o.desired == "" {
		return r, nil, command.Blind("nothing to apply: name a file with --desired")
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

// migrate changes one object.
func (o *fieldsMigrateOptions) migrate(ctx context.Context, m Migrator, target identity.Ref, request fields.Request, wishes []map[string]any, kept *ownership.Ledger) MigrationView {
	v := MigrationView{Object: target, To: request.To}
	what := ownership.Request{Object: show.Reference(target), MoveOnly: !o.apply, Retag: request.Retag}

	if o.within != "" {
		what.Scopes = []fields.Scope{request.Scope}
	}

	if wishes != nil {
		wish, err := owners.WishFor(target, wishes)
		if err != nil {
			return v.ended(err)
		}

		what.Desired = &unstructured.Unstructured{Object: wish}
		what.Desired.SetNamespace(target.Namespace)
	}

	result, err := m.Migrate(ctx, what)

	if end := kept.Settle(stillMoved(result)); err == nil {
		err = end
	}

	return v.with(result).ended(err)
}

// stillMoved are the records of what was not put back again.
func stillMoved(r ownership.Result) []ownership.Record {
	if r.Restored {
		return nil
	}

	return r.Records
}
