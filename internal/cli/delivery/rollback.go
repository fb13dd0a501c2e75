package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

const deliveryRollbackExamples = `  # What would it change?
  arbor compositions plan web -n shop --to previous

  # Go back to what was there before, or to any synthesis of the history
  arbor compositions rollback web -n shop --to previous
  arbor compositions rollback web -n shop --to 8f3a1c2d

  # Wait until it is delivered and ready
  arbor compositions rollback web -n shop --to previous --wait=10m

  # Have it synthesized again
  arbor compositions rollback web -n shop --resume`

// toPrevious is a synthesis by what it is, and not by its uuid.
const toPrevious = "previous"

type deliveryRollbackOptions struct {
	annotator

	to     string
	resume bool
	wait   time.Duration
}

func newDeliveryRollback(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector) *cobra.Command {
	o := &deliveryRollbackOptions{annotator: annotator{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}}
	cmd := &cobra.Command{
		Use:   "rollback COMPOSITION --to UUID|previous | --resume",
		Short: "Go back to an earlier synthesis of a composition, and on again",
		Long: `Pin a composition to an earlier synthesis: its manifests are delivered again, and
nothing is synthesized until --resume. The beginning of a uuid is enough if no other
begins like it; "arbor compositions history" lists them, and "arbor compositions plan
--to" shows beforehand what would change.

It writes the annotation ` + enov1.AnnotationRollback + `, and nothing else; if another client
changes the composition at the same time, nothing is written.

Exit codes: 0 it is pinned, or was already, 1 it could not be changed, or is not ready in
time, 2 there is no such composition or synthesis, or the cluster could not be read.`,
		Example: deliveryRollbackExamples,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}

	cmd.Flags().StringVar(&o.to, "to", "", "the synthesis to go back to: its uuid or the beginning of that, or previous")
	cmd.Flags().BoolVar(&o.resume, "resume", false, "go on synthesizing")
	command.AddWait(cmd, &o.wait, "wait until the composition is ready with the manifests of that synthesis")
	command.AddDryRun(cmd.Flags(), &o.dryRun, "have the server check it, and change nothing")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))

	return cmd
}

func (o *deliveryRollbackOptions) run(ctx context.Context, name string) error {
	if o.resume == (o.to != "") {
		return command.Blind("cannot tell where to go: use either --to UUID, --to %s or --resume", toPrevious)
	}

	if o.resume && o.wait > 0 {
		return command.Blind("--wait is for --to: after --resume, a composition is only synthesized if something has changed")
	}

	d, c, err := o.oneComposition(ctx, name)
	if err != nil {
		return err
	}

	if o.resume {
		return o.resumeFrom(ctx, c)
	}

	target, err := pick(c, o.to)
	if err != nil {
		return err
	}

	if err := o.checkTarget(ctx, d, c, target); err != nil {
		return err
	}

	if err := o.pin(ctx, d, c, target); err != nil {
		return err
	}

	return o.await(ctx, d, c, target)
}

// await waits until a composition is ready with the manifests of a synthesis, if that is asked for.
func (o *deliveryRollbackOptions) await(ctx context.Context, d *deliveries, c *enov1.Composition, target *enov1.Synthesis) error {
	if o.wait <= 0 || o.dryRun {
		return nil
	}

	now := c

	err := command.Wait(ctx, o.wait, func(ctx context.Context) (bool, error) {
		if err := d.read(ctx, source.Query{Resource: source.CompositionResource, Namespace: c.Namespace, Name: c.Name}); err != nil {
			return false, err
		}

		now = d.Sorted()[0]

		return isReadyWith(now, target), nil
	})
	if err != nil {
		return command.Blind("%w", err)
	}

	if !isReadyWith(now, target) {
		return cannotDo("composition %s/%s is not ready with that synthesis after %s: see arbor compositions explain %s -n %s", c.Namespace, c.Name, o.wait, c.Name, c.Namespace)
	}

	return o.say(c, "is ready")
}

// isReadyWith reports whether a composition is ready with the manifests of a synthesis.
func isReadyWith(c *enov1.Composition, target *enov1.Synthesis) bool {
	s := c.Status.CurrentSynthesis

	return s != nil && (s.UUID == target.UUID || s.RolledBackTo == target.UUID) &&
		c.Status.InFlightSynthesis == nil && compositions.CompositionState(c) == enov1.StatusReady
}

// checkTarget refuses what cannot be carried out.
func (o *deliveryRollbackOptions) checkTarget(ctx context.Context, d *deliveries, c *enov1.Composition, target *enov1.Synthesis) error {
	switch {
	case c.DeletionTimestamp != nil:
		return cannotDo("cannot roll back %s/%s: it is being deleted", c.Namespace, c.Name)
	case target == c.Status.InFlightSynthesis:
		return cannotDo("cannot roll back to %s: it is in flight, and has no manifests yet: choose %s", compositions.ShortUUID(target.UUID), choices(c))
	}

	if err := d.readSlices(ctx, c, target); err != nil {
		return command.Blind("%w", err)
	}

	if _, missing := d.Manifests(c, target); len(missing) > 0 {
		return cannotDo("cannot roll back to %s: its manifests are gone (%s)", compositions.ShortUUID(target.UUID), strings.Join(missing, ", "))
	}

	return nil
}

func cannotDo(format string, args ...any) error {
	return &command.ExitError{Code: command.ExitFound, Err: errors.New(render.Clean(command.Typed(fmt.Sprintf(format, args...))))}
}

// notThere is the error of a name that no object has, or more than one.
func notThere(format string, args ...any) error {
	return command.NotFound("%s", render.Clean(fmt.Sprintf(format, args...)))
}

// pick is the synthesis that is meant.
func pick(c *enov1.Composition, text string) (*enov1.Synthesis, error) {
	if text == toPrevious {
		if c.Status.PreviousSynthesis == nil {
			return nil, notThere("there is no synthesis before the current one: choose %s", choices(c))
		}

		return c.Status.PreviousSynthesis, nil
	}

	var matches []*enov1.Synthesis

	for _, s := range compositions.Syntheses(c) {
		if s.UUID == text {
			return s, nil
		}

		if strings.HasPrefix(s.UUID, text) {
			matches = append(matches, s)
		}
	}

	switch len(matches) {
	case 0:
		return nil, notThere("no synthesis %q in the history of %s/%s: choose %s", text, c.Namespace, c.Name, choices(c))
	case 1:
		return matches[0], nil
	default:
		names := make([]string, len(matches))
		for i, s := range matches {
			names[i] = s.UUID
		}

		return nil, notThere("%q is the beginning of several: choose one of %s", text, strings.Join(names, ", "))
	}
}

// choices are the syntheses that have manifests.
func choices(c *enov1.Composition) string {
	var names []string

	for _, s := range compositions.Syntheses(c) {
		if s == c.Status.InFlightSynthesis {
			continue
		}

		name := s.UUID
		if role := compositions.RoleOf(c, s); role != "" {
			name += " (" + role + ")"
		}

		names = append(names, name)
	}

	if len(names) == 0 {
		return "none, there are no others"
	}

	return "one of " + strings.Join(names, ", ")
}

func (o *deliveryRollbackOptions) pin(ctx context.Context, d *deliveries, c *enov1.Composition, target *enov1.Synthesis) error {
	what := compositions.ShortUUID(target.UUID)
	if role := compositions.RoleOf(c, target); role != "" {
		what += ", the " + role + " one"
	}

	if !target.Initialized.IsZero() {
		what += ", begun " + target.Initialized.UTC().Format(time.RFC3339)
	}

	if n := d.Size(c, target); n != nil {
		what += ", " + show.Count(*n, "resource")
	}

	if c.Annotations[enov1.AnnotationRollback] == target.UUID {
		return o.say(c, "is already pinned to "+what)
	}

	if err := o.annotate(ctx, c, map[string]*string{enov1.AnnotationRollback: &target.UUID}); err != nil {
		return err
	}

	if o.dryRun {
		return o.say(c, "would be pinned to "+what+" (dry run: nothing was written)\n"+
			"to see what that changes: arbor compositions plan "+c.Name+" -n "+c.Namespace+" --to "+compositions.ShortUUID(target.UUID))
	}

	return o.say(c, "is pinned to "+what+"\n"+
		"Its manifests are delivered again, as a new synthesis; what only later ones had is deleted.\n"+
		"Nothing is synthesized until: arbor compositions rollback "+c.Name+" -n "+c.Namespace+" --resume\n"+
		"To see how far it is: arbor compositions show "+c.Name+" -n "+c.Namespace)
}

func (o *deliveryRollbackOptions) resumeFrom(ctx context.Context, c *enov1.Composition) error {
	pin, ok := c.Annotations[enov1.AnnotationRollback]
	if !ok {
		return o.say(c, "is not pinned: nothing to do")
	}

	if err := o.annotate(ctx, c, map[string]*string{enov1.AnnotationRollback: nil}); err != nil {
		return err
	}

	if o.dryRun {
		return o.say(c, "would no longer be pinned to "+compositions.ShortUUID(pin)+" (dry run: nothing was written)")
	}

	return o.say(c, "is no longer pinned to "+compositions.ShortUUID(pin)+"\n"+
		"It is synthesized again if anything has changed since.")
}
