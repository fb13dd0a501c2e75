package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/manifest"
	"github.com/arbor-control/arbor/internal/ownership"
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

	exitCode bool
	all      bool
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
		return r, blind("unknown mode %q: use one of %s, %s", m.mode, modeNeeded, modeWhole)
	}

	if m.to == "" {
		return r, blind("nobody to move ownership to: name a manager with --to")
	}

	if err := within.Check(); err != nil {
		return r, blind("%w", err)
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
			return nil, blind("%s: %w", f.Name, f.Errors[0])
		}

		for _, d := range f.Documents {
			all = append(all, d.Object)
		}
	}

	return all, nil
}

// wishFor is the one of an object. A manifest need not say a namespace.
func wishFor(ref ObjectRef, wishes []map[string]any) (map[string]any, error) {
	for _, w := range wishes {
		r := refOf(w)
		if r.Kind == ref.Kind && r.Name == ref.Name && (r.Namespace == "" || r.Namespace == ref.Namespace) {
			if r.APIVersion != ref.APIVersion {
				return nil, fmt.Errorf("cannot compare %s: it is %s, and what is to be applied is %s", ref, ref.APIVersion, r.APIVersion)
			}

			return w, nil
		}
	}

	return nil, fmt.Errorf("cannot find %s in what is to be applied: add it to the file of --desired", ref)
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

Exit codes: 0 it was planned, 1 no such object, or with --exit-code something
would move, 2 it could not look, or the scope is never moved.`,
		Example: fieldsPlanExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args

			return o.run(cmd.Context())
		},
	}

	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: table, json or yaml")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit with 1 if something would move")
	cmd.Flags().BoolVar(&o.all, "all", false, fmt.Sprintf("list everything, not only the first %d", maxListed))
	o.addMoveFlags(cmd)
	o.addOwnersFlags(cmd)

	return acceptAs(cmd, map[string]string{"manager": "to", "field-manager": "to", "show-all": "all"})
}

func (o *fieldsPlanOptions) run(ctx context.Context) error {
	if err := checkFormat(o.format, formatTable, formatText, formatJSON, formatYAML); err != nil {
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
func (o *fieldsPlanOptions) end(v MovesView, end error) error {
	if end == nil && o.exitCode && v.changed() {
		return found()
	}

	return end
}

func planMoves(all []*owned, request fields.Request, wishes []map[string]any) (MovesView, error) {
	views := MovesView{Plans: []MoveView{}}

	for _, thing := range all {
		v, err := planMove(thing, request, wishes)
		if err != nil {
			return views, blind("%s: %w", thing, err)
		}

		views.Plans = append(views.Plans, v)
	}

	return views, nil
}

// planMove plans for one object, and compares what the next apply does before
// and after.
func planMove(thing *owned, request fields.Request, wishes []map[string]any) (MoveView, error) {
	var wish map[string]any

	if wishes != nil {
		var err error
		if wish, err = wishFor(thing.ObjectRef, wishes); err != nil {
			return MoveView{}, err
		}

		request.Next = thing.tree.Desired(wish)
	}

	scopes := []fields.Scope{request.Scope}

	if request.Scope.IsZero() {
		var err error
		if scopes, err = defaultScopes(thing, wish); err != nil {
			return MoveView{}, err
		}
	}

	plan, err := planScopes(thing, request, scopes)
	if err != nil {
		return MoveView{}, err
	}

	return moveViewOf(thing, request, scopes, plan), nil
}

// planScopes plans the move of each scope, one after the other, as one plan.
func planScopes(thing *owned, request fields.Request, scopes []fields.Scope) (*fields.Plan, error) {
	var all *fields.Plan

	entries := thing.entries

	for _, s := range scopes {
		request.Scope = s

		p, err := fields.NewPlan(thing.live, entries, request)
		if err != nil {
			return nil, err
		}

		if all == nil {
			all = p
		} else {
			all.Entries, all.Moves, all.Notes = p.Entries, append(all.Moves, p.Moves...), append(all.Notes, p.Notes...)
		}

		entries = p.Entries
	}

	return all, nil
}

// defaultScopes are what is moved of an object if nobody says otherwise. What is
// to be applied can say so before the object does.
func defaultScopes(thing *owned, wish map[string]any) ([]fields.Scope, error) {
	from := &unstructured.Unstructured{Object: thing.live}
	if w := (&unstructured.Unstructured{Object: wish}); w.GetAnnotations()[ownership.ScopeAnnotation] != "" {
		from = w
	}

	all, err := ownership.DefaultScopes(from)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no part of a %s is moved by default: name one with --scope", thing.Kind)
	}

	return all, err
}

func (o *fieldsPlanOptions) print(v MovesView) error {
	if done, err := printMachine(o.Out, o.format, v); done {
		return err
	}

	w := bufio.NewWriter(o.Out)

	for i, plan := range v.Plans {
		if i > 0 {
			_, _ = fmt.Fprintln(w)
		}

		plan.write(w, o.all, styleOf(o.Out, os.Getenv))
	}

	return w.Flush()
}

// write prints one plan for people.
func (v MoveView) write(w io.Writer, all bool, y style) {
	_, _ = fmt.Fprintf(w, "%s  %s\n", y.paint(bold, clean(v.Object.String())), v.summary())

	for _, n := range v.Notes {
		_, _ = fmt.Fprintln(w, y.paint(yellow, y.glyphs().warn+" "+clean(n.Message)))
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
		rows = append(rows, []string{r.Path, r.Now.text("not " + v.To + "'s"), r.After.text("not " + v.To + "'s")})
	}

	writeSome(w, []string{"NO LONGER APPLIED", "NOW", "AFTER"}, rows, all, y)
}

// writeSome writes a table with an empty line before it, and leaves out what is
// too much.
func writeSome(w io.Writer, head []string, rows [][]string, all bool, y style) {
	shown, more := limit(rows, all)
	if len(shown) == 0 {
		return
	}

	_, _ = fmt.Fprintln(w)
	writeTable(w, append([][]string{head}, shown...))

	if more > 0 {
		_, _ = fmt.Fprintf(w, "%s %s: use --all\n", y.glyphs().more, count(more, "more row"))
	}
}

func (v MoveView) summary() string {
	n := 0
	for _, m := range v.Moves {
		n += len(m.Fields)
	}

	switch {
	case n > 0:
		return fmt.Sprintf("%s would move to %s", count(n, "field"), clean(v.To))
	case v.Changed:
		return "entries of " + clean(v.To) + " would be joined, and no field moves"
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

// text is the fate of something, in words; otherwise is said of what has none.
func (f *FateView) text(otherwise string) string {
	if f == nil {
		return otherwise
	}

	var text string

	switch f.Fate {
	case fields.Partial:
		text = "partial, without " + strings.Join(f.Goes, ", ")
	case fields.Kept:
		text = "stays"
	default:
		text = strings.ToLower(string(f.Fate))
	}

	var names []string
	for _, id := range f.BecauseOf {
		names = append(names, id.String())
	}

	if len(names) > 0 {
		text += ", because of " + strings.Join(names, " and ")
	}

	return text
}
