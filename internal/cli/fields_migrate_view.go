package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/arbor-control/arbor/engine/fields"
)

// A MigrationReport is the result of arbor fields migrate and undo.
type MigrationReport struct {
	DryRun     bool             `json:"dryRun"`
	Migrations []MigrationView  `json:"migrations"`
	Summary    MigrationSummary `json:"summary"`
}

// MigrationSummary counts objects.
type MigrationSummary struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
}

// A MigrationView is what became of one object.
type MigrationView struct {
	Object ObjectRef    `json:"object"`
	Scope  fields.Scope `json:"scope"`
	To     string       `json:"to,omitempty"`
	// Changed says that something was written, or would be in a dry run.
	Changed bool        `json:"changed"`
	Moves   []MovedView `json:"moves"`
	Notes   []MoveNote  `json:"notes"`
	// Record is the file that undoes it, or that was undone.
	Record string `json:"record,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (v MigrationView) with(out outcome, err error) MigrationView {
	v.Changed, v.Moves, v.Notes = out.Changed, movedViews(out.Moves), moveNotes(out.Notes)
	if err != nil {
		return v.failed(err)
	}

	return v
}

func (v MigrationView) failed(err error) MigrationView {
	v.Error = err.Error()
	if v.Moves == nil {
		v.Moves, v.Notes = []MovedView{}, []MoveNote{}
	}

	return v
}

func (r *MigrationReport) add(v MigrationView) {
	r.Migrations = append(r.Migrations, v)

	switch {
	case v.Error != "":
		r.Summary.Failed++
	case v.Changed:
		r.Summary.Changed++
	default:
		r.Summary.Unchanged++
	}
}

// print has a row for each object; what went wrong and what is to be known of
// it goes to errOut.
func (r *MigrationReport) print(out, errOut io.Writer, format string) error {
	if done, err := printMachine(out, format, r); done {
		return err
	}

	rows := [][]string{{"KIND", "NAMESPACE", "NAME", "RESULT", "FIELDS", "FROM", "UNDO WITH"}}
	y := styleOf(errOut, os.Getenv)

	for _, v := range r.Migrations {
		rows = append(rows, []string{v.Object.Kind, v.Object.Namespace, v.Object.Name, r.result(v), strconv.Itoa(v.size()), v.from(), v.undoWith()})
	}

	writeTable(out, rows)

	for _, v := range r.Migrations {
		for _, n := range v.Notes {
			_, _ = fmt.Fprintf(errOut, "%s: %s\n", clean(v.Object.String()), y.paint(yellow, clean(n.Message)))
		}

		if v.Error != "" {
			_, _ = fmt.Fprintf(errOut, "%s: %s\n", clean(v.Object.String()), y.paint(red, clean(v.Error)))
		}
	}

	_, err := fmt.Fprintln(errOut, r.conclusion())

	return err
}

func (r *MigrationReport) conclusion() string {
	text := fmt.Sprintf("%s changed, %d unchanged, %d failed", count(r.Summary.Changed, "object"), r.Summary.Unchanged, r.Summary.Failed)
	if r.DryRun {
		text += " (dry run: nothing was written)"
	}

	return text
}

func (r *MigrationReport) result(v MigrationView) string {
	switch {
	case v.Error != "":
		return "failed"
	case !v.Changed:
		return "unchanged"
	case r.DryRun:
		return "would change"
	default:
		return "changed"
	}
}

// size is how many fields moved.
func (v MigrationView) size() int {
	n := 0
	for _, m := range v.Moves {
		n += len(m.Fields)
	}

	return n
}

func (v MigrationView) from() string {
	var names []string
	for _, m := range v.Moves {
		names = append(names, holderText(m.From))
	}

	return strings.Join(slices.Compact(names), ", ")
}

// undoWith is the file, as long as it was not used.
func (v MigrationView) undoWith() string {
	if v.To == "" {
		return ""
	}

	return v.Record
}
