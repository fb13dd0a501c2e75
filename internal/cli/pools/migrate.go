package pools

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/check"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	ipamrules "github.com/arbor-control/arbor/internal/decide/ipam"
	ipamaudit "github.com/arbor-control/arbor/internal/decide/ipam/audit"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const poolsMigrateExamples = `  # Show what an upgrade needs, and change nothing
  arbor pools migrate

  # Stop the manager, then write it
  kubectl -n arbor-system scale deployment arbor-manager --replicas=0
  arbor pools migrate --yes
  kubectl -n arbor-system scale deployment arbor-manager --replicas=2`

type poolsMigrateOptions struct {
	poolScope

	edit   source.EditorConnector
	output output.Flags
	yes    bool
	now    func() time.Time
}

// newPoolsMigrate returns the command that gives child pools of older versions their
// backing Subnets.
func newPoolsMigrate(streams genericiooptions.IOStreams, connect source.Connector, edit source.EditorConnector) *cobra.Command {
	o := &poolsMigrateOptions{poolScope: poolScope{source.NewScope(streams, connect)}, edit: edit, now: time.Now}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create the backing Subnets of child pools that are in use",
		Long: `Create, for each child pool that was made by hand and that is in use, the Subnet of
its parent that holds its block. Managers of this version create such Subnets for new
child pools themselves. For pools that an older version left in use they do not: the
parent stays closed, and hands out no new blocks, until you run this command. Pools of
SubnetPoolClaims need nothing.

Without --yes this is a dry run. It looks in all namespaces unless -n names one.

No manager may run while it writes, so it refuses to if the Lease of the leader
election is held. A manager with --leader-elect=false has no Lease: make sure yourself
that none runs.

A child pool whose block an Allocated Subnet of the parent overlaps is a conflict: see
who uses these addresses, release one of the two, and run the command again.

Exit codes: 0 there are no conflicts, 1 there are, or a write failed, 2 the cluster
could not be read, or a manager runs.`,
		Example: poolsMigrateExamples,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}

	o.output.Add(cmd, output.Table)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "write; without it nothing is changed")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.NoArgs)

	return cmd
}

func (o *poolsMigrateOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	if o.AllNamespaces {
		*o.Flags.Namespace = ""
	}

	list, err := o.Connect(o.Flags, o.ErrOut)
	if err != nil {
		return command.Blind("%w", err)
	}

	if o.yes {
		if err := source.NoManager(ctx, list, o.now()); err != nil {
			return command.Blind("%w", err)
		}
	}

	s, err := check.ListEstate(ctx, list, *o.Flags.Namespace)
	if err != nil {
		return command.Blind("%w", err)
	}

	report := ipam.PoolMigrationReport{Migrations: []ipam.PoolMigration{}, DryRun: !o.yes}
	if err := o.migrateAll(ctx, ipamaudit.Migrate(s.Inventory), &report); err != nil {
		return command.Blind("%w", err)
	}

	return o.print(report)
}

// migrateAll carries out what it may. An error means that there is no cluster.
func (o *poolsMigrateOptions) migrateAll(ctx context.Context, all []ipamaudit.Migration, report *ipam.PoolMigrationReport) error {
	var e source.Editor

	if o.yes {
		var err error
		if e, err = o.edit(o.Flags); err != nil {
			return err
		}
	}

	var done atomic.Int64

	stop := render.Progress(o.ErrOut, func() string { return fmt.Sprintf("migrating, %d of %d", done.Load(), len(all)) })
	defer stop()

	for _, m := range all {
		v := ipam.PoolMigration{Namespace: m.Child.Namespace, Parent: m.Child.ParentName(), Child: m.Child.Name, CIDR: m.Child.Spec.CIDR, Result: ipam.ResultPlanned}

		switch {
		case m.Conflict != "":
			v.Result, v.Message = ipam.ResultConflict, m.Conflict
		case o.yes:
			v.Subnet, v.Result = m.Subnet.Name, ipam.ResultCreated
			if err := o.back(ctx, e, m); err != nil {
				v.Result, v.Message = ipam.ResultFailed, source.Explain(err).Error()
			}
		default:
			v.Subnet = m.Subnet.Name
		}

		report.Migrations = append(report.Migrations, v)
		done.Add(1)
	}

	return nil
}

// back creates the Subnet that holds the block of a child pool, and marks it Allocated.
func (o *poolsMigrateOptions) back(ctx context.Context, e source.Editor, m ipamaudit.Migration) error {
	s := m.Subnet
	if s.UID == "" {
		if err := e.Create(ctx, s); err != nil {
			return fmt.Errorf("cannot create Subnet %s: %w", s.Name, err)
		}
	}

	at := metav1.NewTime(o.now())
	s.Status.Phase, s.Status.UID, s.Status.PoolUID, s.Status.AllocatedAt = v1alpha1.SubnetAllocated, s.UID, m.Child.UID, &at
	meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: ipamrules.ReasonAllocated, ObservedGeneration: s.Generation,
		Message: fmt.Sprintf("it holds the block of pool %s", m.Child.Name),
	})

	if err := e.UpdateStatus(ctx, s); err != nil {
		return fmt.Errorf("cannot write the status of Subnet %s: %w", s.Name, err)
	}

	return nil
}

func (o *poolsMigrateOptions) print(r ipam.PoolMigrationReport) error {
	counts := map[string]int{}
	rows := [][]string{{render.ColumnNamespace, "PARENT", "CHILD", "CIDR", "SUBNET", "RESULT"}}

	for _, m := range r.Migrations {
		counts[m.Result]++
		rows = append(rows, []string{m.Namespace, m.Parent, m.Child, m.CIDR, m.Subnet, withMessage(m.Result, m.Message)})
	}

	var end error
	if counts[ipam.ResultConflict]+counts[ipam.ResultFailed] > 0 {
		end = command.Found()
	}

	if done, err := o.output.Print(o.Out, "PoolMigrations", r); done {
		if err != nil {
			return err
		}

		return end
	}

	if len(r.Migrations) == 0 {
		_, _ = fmt.Fprintln(o.ErrOut, "no child pool needs a backing Subnet")

		return nil
	}

	o.output.Table(o.Out, rows)

	text := fmt.Sprintf("%s created, %s, %d failed", show.Count(counts[ipam.ResultCreated], "Subnet"), show.Count(counts[ipam.ResultConflict], "conflict"), counts[ipam.ResultFailed])
	if r.DryRun {
		text = fmt.Sprintf("%s to create, %s (dry run: nothing was written; stop the manager and add --yes)", show.Count(counts[ipam.ResultPlanned], "Subnet"), show.Count(counts[ipam.ResultConflict], "conflict"))
	}

	_, _ = fmt.Fprintln(o.ErrOut, text)

	return end
}
