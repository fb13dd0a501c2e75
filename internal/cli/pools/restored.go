package pools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/ipam/v1alpha1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/decide/ipamplan"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

const poolsRestoredExamples = `  # Let a restored pool hand out new blocks
  arbor pools restored core -n network`

type poolsRestoredOptions struct {
	poolScope

	edit   source.EditorConnector
	output output.Flags
	name   string
}

// newPoolsRestored returns the command that ends the restore of a pool.
func newPoolsRestored(streams genericiooptions.IOStreams, connect source.Connector, edit source.EditorConnector) *cobra.Command {
	o := &poolsRestoredOptions{poolScope: poolScope{source.NewScope(streams, connect)}, edit: edit}
	cmd := &cobra.Command{
		Use:   "restored NAME",
		Short: "End the restore of a pool, so that it hands out new blocks",
		Long: `End the restore of a pool. A pool that comes from a backup has another UID than the
one in its annotation ` + v1alpha1.PoolUIDAnnotation + `. Until its restore ends it gives
claims that had a block that very block, and no other claim any: a block that looks free
may belong to a claim that is not restored yet.

A restore ends by itself some time after the last object of the pool came and when every
claim with a recorded block has it. Run this command when the restore is complete and you
do not want to wait. Claims with a recorded block keep waiting for it; the command lists
them.

Exit codes: 0 the restore has ended, 1 the CIDR of the pool is invalid, 2 there is no pool
of that name, or the cluster could not be read or written.`,
		Example: poolsRestoredExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Table)
	o.Flags.AddFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))

	return cmd
}

func (o *poolsRestoredOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	namespace, err := o.Namespace()
	if err != nil {
		return command.Blind("%w", err)
	}

	a, err := o.AddressesOfCluster(ctx, namespace)
	if err != nil {
		return command.Blind("%w", err)
	}

	inv := ipamplan.NewInventory(a, false)
	inv.Place = o.Place(namespace)

	p, err := o.onePool(inv, o.name)
	if err != nil {
		return err
	}

	report := ipam.RestoredReport{Namespace: p.Namespace, Name: p.Name, Waiting: ipam.StillWaiting(a, p.SubnetPool)}

	if old := p.Annotations[v1alpha1.PoolUIDAnnotation]; old != "" && old != string(p.UID) {
		if err := o.end(ctx, p.SubnetPool); err != nil {
			return command.Blind("cannot end the restore of pool %s: %w", p.Name, source.Explain(err))
		}

		report.Ended = true
	}

	return o.print(report)
}

// end writes the UID of a pool into its annotation, if the pool is still the same.
func (o *poolsRestoredOptions) end(ctx context.Context, p *v1alpha1.SubnetPool) error {
	e, err := o.edit(o.Flags)
	if err != nil {
		return err
	}

	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.UID, "annotations": map[string]any{v1alpha1.PoolUIDAnnotation: string(p.UID)},
	}})
	if err != nil {
		return err
	}

	return e.Patch(ctx, p, client.RawPatch(types.MergePatchType, patch))
}

func (o *poolsRestoredOptions) print(r ipam.RestoredReport) error {
	if done, err := o.output.Print(o.Out, "PoolRestore", r); done {
		return err
	}

	text := "was not being restored"
	if r.Ended {
		text = "is restored: new claims get blocks of it"
	}

	_, _ = fmt.Fprintf(o.ErrOut, "pool %s/%s %s\n", r.Namespace, r.Name, text)

	if len(r.Waiting) == 0 {
		return nil
	}

	rows := [][]string{{"NAMESPACE", "CLAIM", "RECORDED", "PHASE", "MESSAGE"}}
	for _, c := range r.Waiting {
		rows = append(rows, []string{c.Namespace, c.Name, c.CIDR, c.Phase, c.Message})
	}

	o.output.Table(o.Out, rows)

	_, err := fmt.Fprintf(o.ErrOut, "%s waiting for a recorded block; remove the annotation %s to give one up\n", show.Count(len(r.Waiting), "claim"), v1alpha1.BlockAnnotation)

	return err
}
