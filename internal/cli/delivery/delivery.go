package delivery

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
)

const deliveryExamples = `  # What is delivered in the current namespace, and what is stuck?
  arbor delivery

  # In all namespaces, or everything about one composition
  arbor delivery -A
  arbor delivery web -n shop

  # One that is called like one of the commands below
  arbor delivery composition/diff

  # What would the next apply change?
  arbor delivery diff web -n shop

  # Delete an old object now that the new one needs to be gone
  arbor delivery prune web --first Service/web-v1

  # Leave the objects alone for a while
  arbor delivery suspend web --reason "database maintenance"
  arbor delivery resume web

  # Go back to what was there before, and on again
  arbor delivery history web
  arbor delivery rollback web --to previous
  arbor delivery rollback web --resume

  # How far are changes of Synthesizers rolled out, and is a rollout halted?
  arbor delivery rollout

  # What is not ready, for a script
  arbor delivery -A -o json | jq '.compositions[] | select(.state != "Ready") | .name'`

type deliveryOptions struct {
	deliveryScope

	format string
	names  []string
	now    func() time.Time
}

// New returns the command that draws compositions and what came of them,
// and those that compare them and roll them back.
func New(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector, now func() time.Time) *cobra.Command {
	cmd := newDelivery(streams, connect, now)
	cmd.AddCommand(command.AsShow(newDelivery(streams, connect, now), "COMPOSITION..."), newDeliveryDiff(streams, connect, servers), newDeliveryHistory(streams, connect), newDeliveryRollback(streams, connect, servers),
		newDeliveryPrune(streams, connect, servers), newDeliverySuspend(streams, connect, servers, now), newDeliveryResume(streams, connect, servers),
		newDeliveryRender(streams, connect, servers), newDeliveryRollout(streams, connect, servers))

	return cmd
}

func newDelivery(streams genericiooptions.IOStreams, connect source.Connector, now func() time.Time) *cobra.Command {
	o := &deliveryOptions{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, now: now}
	cmd := &cobra.Command{
		Use:     "delivery [COMPOSITION...]",
		Aliases: []string{"compositions", "composition"},
		Short:   "Draw compositions, and what came of them in the cluster",
		Long: `Draw each composition with its state, and under it the resources that are not
well. With names, draw everything about those compositions: their syntheses, and
every resource of these. Compositions of a symphony hang under it.

  ✔  ready, or gone as it should be
  !  reconciled, and not ready
  …  waiting to be reconciled
  ✗  the cluster does not agree, and why
  −  being deleted

Exit codes: 0 it was drawn, well or not, 1 no composition of that name, 2 it could
not look.`,
		Example: deliveryExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = compositionNames(args)

			return o.run(cmd.Context())
		},
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", render.FormatTree, "output format: tree, wide (the tree with everything in it), json or yaml")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ArbitraryArgs)

	return cmd
}

func (o *deliveryOptions) run(ctx context.Context) error {
	if err := render.CheckFormat(o.format, render.FormatTree, render.FormatTable, render.FormatText, render.FormatWide, render.FormatJSON, render.FormatYAML); err != nil {
		return err
	}

	namespace, err := o.Namespace()
	if err != nil {
		return command.Blind("%w", err)
	}

	d, err := o.deliveries(ctx, namespace, o.names)
	if err != nil {
		return command.Blind("%w", err)
	}

	if err := o.print(d, namespace); err != nil {
		return err
	}

	return o.missing(d.Sorted(), namespace)
}

// compositionNames are what people call compositions: by name, or by type and name,
// which is the way out for one that is called like a command.
func compositionNames(args []string) []string {
	all := make([]string, len(args))
	for i, arg := range args {
		all[i] = compositionName(arg)
	}

	return all
}

func compositionName(arg string) string {
	kind, name, both := strings.Cut(arg, "/")
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")

	if both && (kind == "composition" || kind == "compositions") {
		return name
	}

	return arg
}

// missing is about names that no composition has.
func (o *deliveryOptions) missing(all []*enov1.Composition, namespace string) error {
	var names []string

	for _, name := range o.names {
		if !slices.ContainsFunc(all, func(c *enov1.Composition) bool { return c.Name == name }) {
			names = append(names, name)
		}
	}

	if len(names) > 0 {
		return o.unknownComposition(names, namespace)
	}

	return nil
}

func (o *deliveryOptions) print(d *deliveries, namespace string) error {
	v := d.View()
	if done, err := render.PrintMachine(o.Out, o.format, v); done {
		return err
	}

	if len(v.Compositions) == 0 && len(d.Symphonies) == 0 {
		if len(o.names) > 0 {
			return nil
		}

		_, err := fmt.Fprintf(o.ErrOut, "No compositions found in %s.\n", o.Place(namespace))

		return err
	}

	everything := len(o.names) > 0 || o.format == render.FormatWide
	if err := drawDeliveries(o.Out, d, v, everything, o.now(), render.StyleOf(o.Out, os.Getenv)); err != nil {
		return err
	}

	_, err := fmt.Fprintln(o.ErrOut, summaryText(v.Summary))

	return err
}
