package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	synthesisrules "github.com/arbor-control/arbor/internal/decide/synthesis"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

const deliveryRolloutExamples = `  # How far are the Synthesizers rolled out?
  arbor compositions rollout

  # Everything about one of them
  arbor compositions rollout web-synth

  # Which rollouts are halted, for a script
  arbor compositions rollout -o json | jq -r '.rollouts[] | select(.halted) | .synthesizer'

  # Go on although compositions have failed
  arbor compositions rollout resume web-synth`

var synthesizerResource = enov1.GroupVersion.WithResource("synthesizers")

type deliveryRolloutOptions struct {
	annotator
	output.Flags
}

func newDeliveryRollout(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector) *cobra.Command {
	o := &deliveryRolloutOptions{annotator: annotator{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}}
	cmd := &cobra.Command{
		Use:   "rollout [SYNTHESIZER]",
		Short: "Show how far Synthesizers are rolled out, and what has halted a rollout",
		Long: `Show how far the present generation of each Synthesizer has reached the compositions that
use it, in all namespaces:

  UPDATED  the current synthesis is of this generation, and is delivered or being delivered
  RUNNING  the synthesis is in flight
  WAITING  its turn has not come
  FAILED   the synthesis failed, cannot be delivered, or was rolled back by a user
  OTHER    the rollout does not concern it: it failed before, ignores side effects, lacks
           an input, or is pinned by a rollback

A rollout in which --rollout-max-failures compositions (a flag of the manager) have failed is
halted: no further composition gets the generation. If all of them are in one namespace, the
rollout is halted in that namespace only. It goes on when compositions recover, when
the Synthesizer is changed, and with "arbor compositions rollout resume".

Exit codes: 0 it was shown, 1 a rollout is halted, if --exit-code is given, 2 there is no such
Synthesizer, or the cluster could not be read.`,
		Example: deliveryRolloutExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.show(cmd.Context(), "")
			}

			return o.show(cmd.Context(), synthesizerName(args[0]))
		},
	}

	o.Add(cmd, output.Table)
	o.AddExitCode(cmd, false, "a rollout is halted")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.MaximumNArgs(1))
	cmd.AddCommand(newDeliveryRolloutResume(streams, connect, servers))

	return cmd
}

func newDeliveryRolloutResume(streams genericiooptions.IOStreams, connect source.Connector, servers serverConnector) *cobra.Command {
	o := &deliveryRolloutOptions{annotator: annotator{deliveryScope: deliveryScope{source.NewScope(streams, connect)}, servers: servers}}
	cmd := &cobra.Command{
		Use:   "resume SYNTHESIZER",
		Short: "Have a halted rollout go on",
		Long: `Have the rollout of the present generation of a Synthesizer go on, however many compositions
fail. The next change of its spec is guarded again.

It writes the annotation ` + enov1.AnnotationResumeRollout + `, with the generation, and nothing else; if
another client changes the Synthesizer at the same time, nothing is written.

A rollout that is not halted is not changed: to resume it in advance would switch the guard off.

Exit codes: 0 it goes on, or was resumed already, 1 it is not halted, or could not be changed,
2 there is no such Synthesizer, or the cluster could not be read.`,
		Example: deliveryRolloutExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			return retried(func() error { return o.resume(cmd.Context(), synthesizerName(args[0])) })
		},
	}

	command.AddDryRun(cmd.Flags(), &o.dryRun, "have the server check it, and change nothing")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))

	return cmd
}

// synthesizerName accepts a name, or type and name for a Synthesizer that is called like a
// command.
func synthesizerName(arg string) string {
	kind, name, both := strings.Cut(arg, "/")
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".")

	if both && (kind == "synthesizer" || kind == "synthesizers") {
		return name
	}

	return arg
}

func (o *deliveryRolloutOptions) show(ctx context.Context, name string) error {
	if err := o.Check(); err != nil {
		return err
	}

	d, err := o.newDeliveries()
	if err != nil {
		return command.Blind("%w", err)
	}

	all, err := d.synthesizers(ctx, name)
	if err != nil {
		return err
	}

	if err := d.read(ctx, source.Query{Resource: source.CompositionResource}); err != nil {
		return command.Blind("%w", err)
	}

	v := d.Rollouts(all)
	if err := o.print(v, name != ""); err != nil {
		return err
	}

	return o.Found(slices.ContainsFunc(v.Rollouts, func(r compositions.RolloutView) bool { return r.Halted }))
}

func (o *deliveryRolloutOptions) print(v compositions.RolloutsView, everything bool) error {
	if done, err := o.Print(o.Out, "Rollouts", v); done {
		return err
	}

	if len(v.Rollouts) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No Synthesizers found.")

		return err
	}

	return o.draw(v, everything)
}

// synthesizers reads those with a name, or all.
func (d *deliveries) synthesizers(ctx context.Context, name string) ([]*enov1.Synthesizer, error) {
	objects, err := d.list(ctx, source.Query{Resource: synthesizerResource, Name: name})

	switch {
	case errors.Is(err, source.ErrNotInstalled):
		return nil, command.Blind("the Synthesizer API (%s) is %w", enov1.GroupVersion, err)
	case err != nil:
		return nil, command.Blind("%w", err)
	case len(objects) == 0 && name != "":
		return nil, notThere("synthesizer %q was not found: leave out the name to see what is there", name)
	}

	found := map[types.NamespacedName]*enov1.Synthesizer{}
	for _, obj := range objects {
		if err := source.Keep(found, identity.RefOf(obj), obj); err != nil {
			return nil, command.Blind("cannot use %s: %w", identity.RefOf(obj), err)
		}
	}

	all := make([]*enov1.Synthesizer, 0, len(found))
	for _, s := range found {
		all = append(all, s)
	}

	slices.SortFunc(all, func(a, b *enov1.Synthesizer) int { return cmp.Compare(a.Name, b.Name) })

	return all, nil
}

// draw prints a table, and under it the rollouts that are halted. Of a single one, it prints
// all compositions that have failed.
func (o *deliveryRolloutOptions) draw(v compositions.RolloutsView, everything bool) error {
	rows := [][]string{{"SYNTHESIZER", "GENERATION", "UPDATED", "RUNNING", "WAITING", "FAILED", "OTHER", "HALTED"}}
	notes := []string{}

	for _, r := range v.Rollouts {
		halted := "no"

		switch {
		case r.Halted:
			halted = "yes"
			notes = append(notes, fmt.Sprintf("%s is halted: %s", r.Synthesizer, r.Message))
		case r.Resumed:
			halted = "no, resumed"
		}

		rows = append(rows, []string{
			r.Synthesizer, strconv.FormatInt(r.Generation, 10), strconv.Itoa(r.Updated), strconv.Itoa(r.Running), strconv.Itoa(r.Waiting),
			strconv.Itoa(len(r.Failed)), strconv.Itoa(r.Other), halted,
		})

		if !everything {
			continue
		}

		for _, c := range r.Failed {
			notes = append(notes, fmt.Sprintf("%s/%s failed: %s", c.Namespace, c.Name, compositions.WithoutEmpty(c.Error)))
		}
	}

	o.Table(o.Out, rows)

	for _, note := range notes {
		if _, err := fmt.Fprintln(o.Out, render.Clean(command.Typed(note))); err != nil {
			return err
		}
	}

	return nil
}

func (o *deliveryRolloutOptions) resume(ctx context.Context, name string) error {
	d, err := o.newDeliveries()
	if err != nil {
		return command.Blind("%w", err)
	}

	all, err := d.synthesizers(ctx, name)
	if err != nil {
		return err
	}

	s := all[0]
	if synthesisrules.IsResumed(s) {
		return o.tell(s, "was resumed already")
	}

	if len(synthesisrules.AllHalts(s)) == 0 {
		return cannotDo("the rollout of synthesizer %s, generation %d, is not halted: nothing was written. To see how far it is: arbor compositions rollout %s", s.Name, s.Generation, s.Name)
	}

	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": s.ResourceVersion, "annotations": map[string]string{enov1.AnnotationResumeRollout: strconv.FormatInt(s.Generation, 10)},
	}})
	if err != nil {
		return command.Blind("%w", err)
	}

	if err := o.annotateSynthesizer(ctx, s, patch); err != nil {
		return err
	}

	if o.dryRun {
		return o.tell(s, "would be resumed (dry run: nothing was written)")
	}

	return o.tell(s, "goes on, however many compositions fail\nThe next change of its spec is guarded again.\nTo see how far it is: arbor compositions rollout "+s.Name)
}

func (o *deliveryRolloutOptions) annotateSynthesizer(ctx context.Context, s *enov1.Synthesizer, patch []byte) error {
	to, err := o.servers(o.Scope.Flags)
	if err != nil {
		return command.Blind("%w", err)
	}

	ref := identity.Ref{APIVersion: enov1.GroupVersion.String(), Kind: enov1.SynthesizerKind, Name: s.Name}

	err = to.Annotate(ctx, ref, patch, o.dryRun)
	if apierrors.IsConflict(err) {
		return changed(ref)
	}

	if err != nil {
		return &command.ExitError{Code: command.ExitFound, Err: fmt.Errorf("cannot change %s: %w", ref, err)}
	}

	return nil
}

// tell prints what was done to the rollout of a Synthesizer.
func (o *deliveryRolloutOptions) tell(s *enov1.Synthesizer, text string) error {
	lines := strings.Split(fmt.Sprintf("the rollout of synthesizer %s, generation %d, %s", s.Name, s.Generation, text), "\n")
	for i := range lines {
		lines[i] = render.Clean(command.Typed(lines[i]))
	}

	_, err := fmt.Fprintln(o.Out, strings.Join(lines, "\n"))

	return err
}
