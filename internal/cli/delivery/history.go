package delivery

import (
	"context"
	"fmt"
	"strconv"
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

const deliveryHistoryExamples = `  # What was delivered before?
  arbor compositions history web -n shop

  # And what would going back to it change?
  arbor compositions plan web -n shop --to 8f3a1c2d`

type deliveryHistoryOptions struct {
	deliveryScope

	output.Flags
}

func newDeliveryHistory(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &deliveryHistoryOptions{deliveryScope: deliveryScope{source.NewScope(streams, connect)}}
	cmd := &cobra.Command{
		Use:   "history COMPOSITION",
		Short: "List the syntheses of a composition",
		Long: `List the syntheses of a composition whose manifests are still there, newest first.
Each but the one in flight can be restored with "arbor compositions rollback".

Exit codes: 0 they were listed, 2 there is no composition of that name, or the cluster could
not be read.`,
		Example: deliveryHistoryExamples,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}

	o.Add(cmd, output.Table)
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))

	return cmd
}

func (o *deliveryHistoryOptions) run(ctx context.Context, name string) error {
	if err := o.Check(); err != nil {
		return err
	}

	d, c, err := o.oneComposition(ctx, name)
	if err != nil {
		return err
	}

	if err := d.readSlices(ctx, c, compositions.Syntheses(c)...); err != nil {
		return command.Blind("%w", err)
	}

	v := d.History(c)
	if done, err := o.Print(o.Out, "CompositionHistory", v); done {
		return err
	}

	if len(v.Syntheses) == 0 {
		_, err := fmt.Fprintf(o.ErrOut, "Composition %s/%s was not synthesized yet.\n", render.Clean(c.Namespace), render.Clean(c.Name))

		return err
	}

	o.Table(o.Out, historyRows(v))

	return nil
}

func historyRows(v compositions.HistoryView) [][]string {
	rows := [][]string{{"UUID", "IS", "BEGUN", "SYNTHESIZER", "COMPOSITION", "STATE", "RESOURCES", "ROLLED BACK TO", "RESULTS"}}

	for _, s := range v.Syntheses {
		begun, resources := "", "unknown"
		if !s.Begun.IsZero() {
			begun = s.Begun.UTC().Format(time.RFC3339)
		}

		if s.Resources != nil {
			resources = strconv.Itoa(*s.Resources)
		}

		rows = append(rows, []string{
			s.UUID, s.Role, begun, strconv.FormatInt(s.SynthesizerGeneration, 10), strconv.FormatInt(s.CompositionGeneration, 10),
			s.State.Text(), resources, compositions.ShortUUID(s.RolledBackTo), resultsText(s.Results),
		})
	}

	return rows
}

// resultsText is the gravest result, and how many more there are.
func resultsText(all []enov1.Result) string {
	for _, severity := range []string{enov1.SeverityError, enov1.SeverityWarning, enov1.SeverityInfo, ""} {
		for _, r := range all {
			if r.Severity != severity {
				continue
			}

			text := r.Message
			if severity != "" {
				text = severity + ": " + text
			}

			if len(all) > 1 {
				text += fmt.Sprintf(" (and %d more)", len(all)-1)
			}

			return text
		}
	}

	return ""
}
