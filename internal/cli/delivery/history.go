package delivery

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/cli/source"
	"github.com/arbor-control/arbor/internal/show"
)

const deliveryHistoryExamples = `  # What was delivered before?
  arbor delivery history web -n shop

  # And what would going back to it change?
  arbor delivery diff web -n shop --synthesis 8f3a1c2d`

type deliveryHistoryOptions struct {
	deliveryScope

	format string
}

func newDeliveryHistory(streams genericiooptions.IOStreams, connect source.Connector) *cobra.Command {
	o := &deliveryHistoryOptions{deliveryScope: deliveryScope{source.NewScope(streams, connect)}}
	cmd := &cobra.Command{
		Use:   "history COMPOSITION",
		Short: "List the syntheses of a composition",
		Long: `List the syntheses of a composition whose manifests are still there, newest first.
Each but the one in flight can be gone back to with "arbor delivery rollback".

Exit codes: 0 they were listed, 1 no composition of that name, 2 it could not look.`,
		Example: deliveryHistoryExamples,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", render.FormatTable, "output format: table, json or yaml")
	o.AddClusterFlags(cmd.Flags())
	command.CheckUsage(cmd, cobra.ExactArgs(1))

	return cmd
}

func (o *deliveryHistoryOptions) run(ctx context.Context, name string) error {
	if err := render.CheckFormat(o.format, render.FormatTable, render.FormatText, render.FormatJSON, render.FormatYAML); err != nil {
		return err
	}

	d, c, err := o.oneComposition(ctx, name)
	if err != nil {
		return err
	}

	if err := d.readSlices(ctx, c, syntheses(c)...); err != nil {
		return command.Blind("%w", err)
	}

	v := d.history(c)
	if done, err := render.PrintMachine(o.Out, o.format, v); done {
		return err
	}

	if len(v.Syntheses) == 0 {
		_, err := fmt.Fprintf(o.ErrOut, "Composition %s/%s was not synthesized yet.\n", render.Clean(c.Namespace), render.Clean(c.Name))

		return err
	}

	render.WriteTable(o.Out, v.rows())

	return nil
}

// HistoryView is what arbor delivery history prints for programs.
type HistoryView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// PinnedTo is the synthesis that the composition is rolled back to.
	PinnedTo string `json:"pinnedTo,omitempty"`
	// Syntheses are newest first.
	Syntheses []PastSynthesis `json:"syntheses"`
}

// A PastSynthesis is one synthesis among the others of its composition.
type PastSynthesis struct {
	UUID string `json:"uuid"`
	// Role is in flight, current, previous, or "" for older ones.
	Role                  string         `json:"role,omitempty"`
	Begun                 *metav1.Time   `json:"begun,omitempty"`
	SynthesizerGeneration int64          `json:"synthesizerGeneration"`
	CompositionGeneration int64          `json:"compositionGeneration"`
	State                 SynthesisState `json:"state"`
	// Resources are without those that were to go. They are absent if a slice is.
	Resources    *int           `json:"resources,omitempty"`
	RolledBackTo string         `json:"rolledBackTo,omitempty"`
	Results      []enov1.Result `json:"results"`
}

func (d *deliveries) history(c *enov1.Composition) HistoryView {
	v := HistoryView{Namespace: c.Namespace, Name: c.Name, PinnedTo: c.Annotations[enov1.AnnotationRollback], Syntheses: []PastSynthesis{}}

	for _, s := range syntheses(c) {
		v.Syntheses = append(v.Syntheses, PastSynthesis{
			UUID: s.UUID, Role: roleOf(c, s), Begun: s.Initialized, State: synthesisState(s),
			SynthesizerGeneration: s.ObservedSynthesizerGeneration, CompositionGeneration: s.ObservedCompositionGeneration,
			Resources: d.size(c, s), RolledBackTo: s.RolledBackTo, Results: show.List(s.Results),
		})
	}

	return v
}

// roleOf says what a synthesis is to its composition.
func roleOf(c *enov1.Composition, s *enov1.Synthesis) string {
	switch s {
	case c.Status.InFlightSynthesis:
		return "in flight"
	case c.Status.CurrentSynthesis:
		return "current"
	case c.Status.PreviousSynthesis:
		return "previous"
	default:
		return ""
	}
}

// size is how many resources a synthesis has, nil if nobody knows.
func (d *deliveries) size(c *enov1.Composition, s *enov1.Synthesis) *int {
	all, missing := d.manifests(c, s)
	if len(missing) > 0 || s.Synthesized == nil {
		return nil
	}

	n := 0

	for _, one := range all {
		if !one.tombstone {
			n++
		}
	}

	return &n
}

func (v HistoryView) rows() [][]string {
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
			s.State.text(), resources, shortUUID(s.RolledBackTo), resultsText(s.Results),
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
