package delivery

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/compositions"
)

const explainExamples = `  # Why is it not ready, and what can be done?
  arbor compositions explain web -n shop

  # Print it again whenever it changes
  arbor compositions explain web -n shop --watch

  # The objects that block it, for a script
  arbor compositions explain web -o jsonpath='{.compositions[*].blockers[*].object.name}'`

type explainOptions struct {
	deliveryOptions
}

func newExplain(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &explainOptions{deliveryOptions{deliveryScope: deliveryScope{source.NewScope(streams, connect)}}}
	cmd := &cobra.Command{
		Use:   "explain COMPOSITION...",
		Short: "Explain why a composition is not ready",
		Long: `List what keeps a composition from being ready: errors of its synthesis, the objects that
block it with their messages, other compositions that it waits for, and what you can do.

Exit codes: 0 it is ready, 1 it is not ready, 2 there is no composition of that name, or the
cluster could not be read.`,
		Example: explainExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = compositionNames(args)

			if err := o.Check(); err != nil {
				return err
			}

			return o.Run(cmd.Context(), &o.IOStreams, o.run)
		},
	}

	o.Add(cmd, output.Text)
	o.AddWatch(cmd)
	o.AddExitCode(cmd, true, "a composition is not ready")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.MinimumNArgs(1))

	return cmd
}

func (o *explainOptions) run(ctx context.Context) error {
	namespace, err := o.Namespace()
	if err != nil {
		return command.Blind("%w", err)
	}

	d, err := o.deliveries(ctx, namespace, o.names)
	if err != nil {
		return command.Blind("%w", err)
	}

	v := d.View().Explain()

	done, err := o.Print(o.Out, "CompositionExplanations", v)
	if err != nil {
		return err
	}

	if !done {
		for i, c := range v.Compositions {
			if i > 0 {
				_, _ = fmt.Fprintln(o.Out)
			}

			if err := writeExplanation(o.Out, c, render.StyleOf(o.Out, os.Getenv)); err != nil {
				return err
			}
		}
	}

	if err := o.missing(d.Sorted(), namespace); err != nil {
		return err
	}

	return o.Found(!v.IsReady())
}

// writeExplanation prints why a composition is not ready.
func writeExplanation(w io.Writer, c compositions.ExplanationView, s render.Style) error {
	name := render.Clean(c.Namespace + "/" + c.Name)
	if c.Ready {
		_, err := fmt.Fprintln(w, name+" is ready.")

		return err
	}

	_, err := fmt.Fprintf(w, "%s is not ready: %s\n", name, render.Clean(c.State))

	for _, b := range c.Blockers {
		mark, _ := s.Glyphs().Worst([]show.NoteView{{Severity: b.Severity}})
		text := b.Message

		if b.Object != nil {
			text = b.Object.String() + ": " + text
		}

		_, _ = fmt.Fprintln(w, "  "+s.Severity(b.Severity, mark)+render.Clean(command.Typed(text)))

		if b.Action != "" {
			_, _ = fmt.Fprintln(w, "    To do: "+render.Clean(command.Typed(b.Action)))
		}
	}

	if c.Waiting > 0 {
		_, _ = fmt.Fprintf(w, "  %s for these.\n", show.Verb(c.Waiting, "more object", "waits", "wait"))
	}

	return err
}
