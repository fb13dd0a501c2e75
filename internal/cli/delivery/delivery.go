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
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

const deliveryExamples = `  # What is delivered in the current namespace, and what is stuck?
  arbor compositions

  # In all namespaces, or everything about one composition
  arbor compositions -A
  arbor compositions show web -n shop

  # With the events of the composition and of its objects
  arbor compositions show web -n shop --events

  # One that is called like one of the commands below
  arbor compositions show diff

  # Why is it not ready, and what can be done?
  arbor compositions explain web -n shop

  # What would the next apply change?
  arbor compositions plan web -n shop

  # Delete an old object now that the new one needs to be gone
  arbor compositions prune web --first Service/web-v1

  # Leave the objects alone for a while
  arbor compositions suspend web --reason "database maintenance"
  arbor compositions resume web

  # Go back to what was there before, and on again
  arbor compositions history web
  arbor compositions rollback web --to previous
  arbor compositions rollback web --resume

  # How far are changes of Synthesizers rolled out, and is a rollout halted?
  arbor compositions rollout

  # What is not ready, for a script
  arbor compositions -A -o json | jq '.compositions[] | select(.state != "Ready") | .name'`

type deliveryOptions struct {
	deliveryScope

	output.Flags

	names  []string
	events bool
	now    func() time.Time
}

// New returns the command that draws compositions and what came of them,
// and those that compare them and roll them back.
func New(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector, now func() time.Time) *cobra.Command {
	cmd := newDelivery(streams, connect, now)
	cmd.AddCommand(command.AsShow(newDelivery(streams, connect, now), "COMPOSITION..."), newExplain(streams, connect), newDeliveryDiff(streams, connect, servers), newDeliveryHistory(streams, connect), newDeliveryRollback(streams, connect, servers),
		newDeliveryPrune(streams, connect, servers), newDeliverySuspend(streams, connect, servers, now), newDeliveryResume(streams, connect, servers),
		newDeliveryRender(streams, connect, servers), newDeliveryRollout(streams, connect, servers))

	return cmd
}

func newDelivery(streams genericiooptions.IOStreams, connect source.Connector, now func() time.Time) *cobra.Command {
	o := &deliveryOptions{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, now: now}
	cmd := &cobra.Command{
		Use:     "compositions [COMPOSITION...]",
		Aliases: []string{"delivery", "composition", "comp"},
		Short:   "Show compositions and the state of their objects",
		Long: `Draw each composition with its state, and below it the resources that are not ready.
With names, draw everything about those compositions: their syntheses and all of
their resources. Compositions of a symphony are drawn below it.

  ✔  ready, or deleted as intended
  !  reconciled, and not ready
  …  waiting to be reconciled
  ✗  an error, with its message
  −  being deleted

Exit codes: 0 they were shown, ready or not, 1 one of them is not ready, if --exit-code is
given, 2 there is no composition of that name, or the cluster could not be read.`,
		Example: deliveryExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = compositionNames(args)

			if err := o.Check(); err != nil {
				return err
			}

			return o.Run(cmd.Context(), &o.IOStreams, o.run)
		},
	}

	o.Add(cmd, output.Tree, output.Table, output.Wide, output.Name)
	o.AddSelector(cmd, "compositions")
	o.AddDepth(cmd, "levels of the tree")
	cmd.Flags().BoolVar(&o.events, "events", false, "also list the events of the compositions and of their objects")
	o.AddWatch(cmd)
	o.AddExitCode(cmd, false, "a composition is not ready")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ArbitraryArgs)

	return cmd
}

func (o *deliveryOptions) run(ctx context.Context) error {
	namespace, err := o.Namespace()
	if err != nil {
		return command.Blind("%w", err)
	}

	d, err := o.deliveries(ctx, namespace, o.names)
	if err != nil {
		return command.Blind("%w", err)
	}

	for key, c := range d.Compositions {
		if !o.Matches(c.Labels) {
			delete(d.Compositions, key)
		}
	}

	v := d.View()
	if o.events {
		if v.Events, err = d.events(ctx, v); err != nil {
			return command.Blind("%w", err)
		}
	}

	if err := o.print(d, v, namespace); err != nil {
		return err
	}

	if err := o.missing(d.Sorted(), namespace); err != nil {
		return err
	}

	return o.Found(slices.ContainsFunc(v.Compositions, func(c compositions.CompositionView) bool { return !c.IsReady() }))
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

	if both && slices.Contains([]string{"composition", "compositions", "comp"}, kind) {
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

func (o *deliveryOptions) print(d *deliveries, v compositions.DeliveryView, namespace string) error {
	if done, err := o.Print(o.Out, "Compositions", v); done {
		return err
	}

	if len(v.Compositions) == 0 && (len(d.Symphonies) == 0 || o.Selects()) {
		if len(o.names) > 0 {
			return nil
		}

		_, err := fmt.Fprintf(o.ErrOut, "No compositions found in %s.\n", o.Place(namespace))

		return err
	}

	if o.Is(output.Table) {
		o.Table(o.Out, compositionRows(v, o.now()))
		o.printEvents(v)

		return nil
	}

	everything := len(o.names) > 0 || o.Is(output.Wide)
	if err := drawDeliveries(o.Out, d, v, everything, o.now(), render.StyleOf(o.Out, os.Getenv), o.Depth); err != nil {
		return err
	}

	o.printEvents(v)

	_, err := fmt.Fprintln(o.ErrOut, summaryText(v.Summary))

	return err
}
