package fields

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

const fieldsPlanExamples = `  # What would move if eno were to have the init containers?
  arbor fields plan deploy/web --scope spec.template.spec.initContainers --to eno

  # Given what eno is about to apply
  arbor fields plan deploy/web --scope spec.template.spec --to eno --desired web.yaml

  # Everything in the scope, also what only others ever named
  arbor fields plan deploy/web --scope spec.template.spec.initContainers --to eno --mode whole

  # Fail in CI if anything would have to move
  arbor fields plan deploy -l app=web --scope spec.template.spec.containers --to eno --exit-code`

type fieldsPlanOptions struct {
	ownersOptions
	moveOptions

	all bool
}

// moveOptions say what is to be moved, and to whom.
type moveOptions struct {
	to      string
	mode    string
	desired string
	retag   bool
}

func (m *moveOptions) addMoveFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.to, "to", "", "the manager that is to own it, as one who applies")
	cmd.Flags().StringVar(&m.mode, "mode", modeNeeded, "needed: what the manager names or has a part of; whole: everything in the scope")
	cmd.Flags().BoolVar(&m.retag, "retag", false, "read entries in other API versions as if they were in the object's, instead of leaving them alone")
	cmd.Flags().StringVar(&m.desired, "desired", "", "file with what the manager is about to apply, - for standard input")
}

const (
	modeNeeded = "needed"
	modeWhole  = "whole"
)

// request is what is asked for, but for what differs from object to object.
func (m *moveOptions) request(within fields.Scope) (fields.Request, error) {
	r := fields.Request{Scope: within, To: m.to, Mode: fields.Needed, Retag: m.retag}

	switch m.mode {
	case modeNeeded:
	case modeWhole:
		r.Mode = fields.Whole
	default:
		return r, command.Blind("unknown mode %q: use one of %s, %s", m.mode, modeNeeded, modeWhole)
	}

	if m.to == "" {
		return r, command.Blind("nobody to move ownership to: name a manager with --to")
	}

	if err := within.Check(); err != nil {
		return r, command.Blind("%w", err)
	}

	return r, nil
}

// wishes reads what the manager is about to apply: nil if that is not said.
func (m *moveOptions) wishes(in io.Reader) ([]map[string]any, error) {
	if m.desired == "" {
		return nil, nil
	}

	all := []map[string]any{}

	for _, source := range manifest.Sources([]string{m.desired}, in) {
		f := source.File()
		if len(f.Errors) > 0 {
			return nil, command.Blind("%s: %w", f.Name, f.Errors[0])
		}

		for _, d := range f.Documents {
			all = append(all, d.Object)
		}
	}

	return all, nil
}

func newFieldsPlan(streams genericiooptions.IOStreams, find finder) *cobra.Command {
	o := &fieldsPlanOptions{ownersOptions: newOwnersOptions(streams, find)}
	cmd := &cobra.Command{
		Use:   "plan KIND/NAME... --to MANAGER [--scope SCOPE]",
		Short: "Show what would move to a manager, and what a removal would do then",
		Long: `Show which fields would move from whom, so that a manager that applies can remove
a part of an object; and what its next apply would do to each thing that it no
longer names, now and after the move:

  removed   it goes
  partial   some of it goes and the rest stays, because somebody else holds it;
            if something that goes is required, the server refuses the apply
  stays     it stays for ever, and the server says nothing
  swept     it goes although nobody named it, with what it is in

Without --scope it is about the init containers of a workload, or about what its
annotation eno.azure.io/migrate-ownership says.

With --desired, the next apply is that file. Without, it is what the manager
applies now but for the scope. Nothing is written.

Exit codes: 0 it was planned, 1 something would move, if --exit-code is given,
2 there is no such object, the cluster could not be read, or the scope is never moved.`,
		Example: fieldsPlanExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args

			return o.run(cmd.Context())
		},
	}

	o.output.Add(cmd, output.Table)
	o.output.AddExitCode(cmd, false, "something would move")
	cmd.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("list everything, not only the first %d", render.MaxListed))
	o.addMoveFlags(cmd)
	o.addOwnersFlags(cmd)

	return command.AcceptAs(cmd, map[string]string{"manager": "to", "field-manager": "to", "show-all": "all"})
}

func (o *fieldsPlanOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}

	within, err := o.parseWithin()
	if err != nil {
		return err
	}

	request, err := o.request(within)
	if err != nil {
		return err
	}

	wishes, err := o.wishes(o.In)
	if err != nil {
		return err
	}

	all, end, err := o.gather(ctx)
	if err != nil {
		return err
	}

	views, err := planMoves(all, request, wishes)
	if err != nil {
		return err
	}

	if err := o.print(views); err != nil {
		return err
	}

	return o.end(views, end)
}

// end is how the command ends when everything was printed.
func (o *fieldsPlanOptions) end(v owners.MovesView, end error) error {
	if end == nil {
		return o.output.Found(v.Changed())
	}

	return end
}

func planMoves(all []*owners.Object, request fields.Request, wishes []map[string]any) (owners.MovesView, error) {
	views := owners.MovesView{Plans: []owners.MoveView{}}

	for _, thing := range all {
		v, err := owners.PlanMove(thing, request, wishes)
		if err != nil {
			return views, command.Blind("%s: %w", thing, err)
		}

		views.Plans = append(views.Plans, v)
	}

	return views, nil
}

func (o *fieldsPlanOptions) print(v owners.MovesView) error {
	if done, err := o.output.Print(o.Out, "FieldPlan", v); done {
		return err
	}

	w := bufio.NewWriter(o.Out)

	for i, plan := range v.Plans {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}

		writePlan(w, plan, o.all, render.StyleOf(o.Out, os.Getenv))
	}

	return w.Flush()
}

// writePlan prints one plan for people.
func writePlan(w io.Writer, v owners.MoveView, all bool, y render.Style) {
	_, _ = fmt.Fprintf(w, "%s  %s\n", y.Paint(render.Bold, render.Clean(v.Object.String())), planSummary(v))

	for _, n := range v.Notes {
		_, _ = fmt.Fprintln(w, y.Paint(render.Yellow, y.Glyphs().Warn+" "+render.Clean(n.Message)))
	}

	var rows [][]string

	for _, m := range v.Moves {
		for _, path := range m.Fields {
			rows = append(rows, []string{holderText(m.From), path})
		}
	}

	writeSome(w, []string{"FROM", "FIELD"}, rows, all, y)

	rows = nil
	for _, r := range v.Removals {
		rows = append(rows, []string{r.Path, r.Now.Text("not " + v.To + "'s"), r.After.Text("not " + v.To + "'s")})
	}

	writeSome(w, []string{"NO LONGER APPLIED", "NOW", "AFTER"}, rows, all, y)
}

// writeSome writes a table with an empty line before it, and leaves out what is
// too much.
func writeSome(w io.Writer, head []string, rows [][]string, all bool, y render.Style) {
	shown, more := render.Limit(rows, all)
	if len(shown) == 0 {
		return
	}

	_, _ = fmt.Fprintln(w)
	render.WriteTable(w, append([][]string{head}, shown...))

	if more > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: use --all\n", y.Glyphs().More, show.Count(more, "more row"))
	}
}

func planSummary(v owners.MoveView) string {
	n := 0
	for _, m := range v.Moves {
		n += len(m.Fields)
	}

	switch {
	case n > 0:
		return fmt.Sprintf("%s would move to %s", show.Count(n, "field"), render.Clean(v.To))
	case v.Changed:
		return "entries of " + render.Clean(v.To) + " would be joined, and no field moves"
	case !v.ScopeExists:
		return fmt.Sprintf("nothing to move: it has no %s", v.Scope)
	default:
		return "nothing to move"
	}
}

func holderText(id *fields.Identity) string {
	if id == nil {
		return "nobody"
	}

	return id.String()
}
