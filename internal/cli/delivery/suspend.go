package delivery

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/source"
	decide "github.com/arbor-control/arbor/internal/decide/delivery"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

const deliverySuspendExamples = `  # Leave the objects of a composition alone during maintenance
  arbor compositions suspend web -n shop --reason "database maintenance, ticket 4711"

  # Which compositions are suspended, since when, and why?
  arbor compositions -A -o json | jq '.compositions[] | select(.suspended) | {namespace, name, suspended}'

  # Deliver again
  arbor compositions resume web -n shop`

// maxReason is how long the reason of a suspension can be.
const maxReason = 256

type deliverySuspendOptions struct {
	annotator

	reason string
	now    func() time.Time
}

func newDeliverySuspend(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector, now func() time.Time) *cobra.Command {
	o := &deliverySuspendOptions{annotator: annotator{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}, now: now}
	cmd := &cobra.Command{
		Use:   "suspend COMPOSITION --reason TEXT",
		Short: "Stop delivery of a composition",
		Long: `Have delivery write nothing for a composition until "arbor compositions resume": no manifest is
applied, no drift is corrected and no object is pruned. Writes that are under way are
finished. The composition is still synthesized; what is new is delivered when it is
resumed. If the composition is deleted, its objects are deleted as usual.

It writes the annotation ` + enov1.AnnotationSuspend + `, with the time and the reason, and nothing else; if
another client changes the composition at the same time, nothing is written.

Exit codes: 0 it is suspended, or was already, 1 it could not be changed, 2 there is no
such composition, or the cluster could not be read.`,
		Example: deliverySuspendExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			return retried(func() error { return o.suspend(cmd.Context(), args[0]) })
		},
	}

	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for everybody who looks at the composition")
	o.addFlags(cmd)

	return cmd
}

func newDeliveryResume(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector) *cobra.Command {
	o := &deliverySuspendOptions{annotator: annotator{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}}
	cmd := &cobra.Command{
		Use:   "resume COMPOSITION",
		Short: "Deliver a composition again that was suspended",
		Long: `Deliver a composition again that was suspended with "arbor compositions suspend". The current
synthesis is applied, and objects that have changed in the meantime are corrected.

It removes the annotation ` + enov1.AnnotationSuspend + `, and changes nothing else.

Exit codes: 0 it is resumed, or was not suspended, 1 it could not be changed, 2 there is no
such composition, or the cluster could not be read.`,
		Example: deliverySuspendExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			return retried(func() error { return o.resume(cmd.Context(), args[0]) })
		},
	}

	o.addFlags(cmd)

	return cmd
}

func (o *deliverySuspendOptions) addFlags(cmd *cobra.Command) {
	command.AddDryRun(cmd.Flags(), &o.dryRun, "have the server check it, and change nothing")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))
}

func (o *deliverySuspendOptions) suspend(ctx context.Context, name string) error {
	reason := strings.Join(strings.Fields(o.reason), " ")

	switch {
	case reason == "":
		return command.Blind("cannot suspend without a reason: use --reason TEXT")
	case len(reason) > maxReason:
		return command.Blind("cannot use the reason: it is longer than %d bytes", maxReason)
	}

	_, c, err := o.oneComposition(ctx, name)
	if err != nil {
		return err
	}

	if c.DeletionTimestamp != nil {
		return cannotDo("cannot suspend %s/%s: it is being deleted, which a suspension does not stop", c.Namespace, c.Name)
	}

	s := decide.Suspension{Since: o.now(), Reason: reason}

	if was := compositions.Suspended(c); was != nil {
		if was.Reason == reason {
			return o.say(c, "is suspended already\n"+was.String())
		}

		if !was.Since.IsZero() {
			s.Since = was.Since
		}
	}

	value := s.Annotation()
	if err := o.annotate(ctx, c, map[string]*string{enov1.AnnotationSuspend: &value}); err != nil {
		return err
	}

	if o.dryRun {
		return o.say(c, "would be suspended (dry run: nothing was written)")
	}

	return o.say(c, "is suspended\n"+
		"Delivery writes nothing for it until: arbor compositions resume "+c.Name+" -n "+c.Namespace+"\n"+
		"It is still synthesized, and its objects are deleted if it is deleted.")
}

func (o *deliverySuspendOptions) resume(ctx context.Context, name string) error {
	_, c, err := o.oneComposition(ctx, name)
	if err != nil {
		return err
	}

	was := compositions.Suspended(c)
	if was == nil {
		return o.say(c, "is not suspended: nothing to do")
	}

	if err := o.annotate(ctx, c, map[string]*string{enov1.AnnotationSuspend: nil}); err != nil {
		return err
	}

	if o.dryRun {
		return o.say(c, "would be resumed (dry run: nothing was written)\n"+was.String())
	}

	return o.say(c, "is resumed\nIts current synthesis is delivered, and drift is corrected.\nTo see how far it is: arbor compositions show "+c.Name+" -n "+c.Namespace)
}
