package fields

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/output"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/ownership"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// A MigrationReport is the result of arbor fields migrate and undo.
type MigrationReport struct {
	DryRun     bool             `json:"dryRun"`
	Migrations []MigrationView  `json:"migrations"`
	Summary    MigrationSummary `json:"summary"`
	// Record is the file that undoes it, "" if there is nothing to undo.
	Record string `json:"record,omitempty"`

	done atomic.Int64
}

// MigrationSummary counts objects.
type MigrationSummary struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
}

// A MigrationView is what became of one object.
type MigrationView struct {
	Object identity.Ref   `json:"object"`
	Scopes []fields.Scope `json:"scopes"`
	To     string         `json:"to,omitempty"`
	// Changed says that ownership was moved, or would be in a dry run. If it was
	// not, Skipped says why.
	Changed bool             `json:"changed"`
	Skipped ownership.Reason `json:"skipped,omitempty"`
	// Applied says that what is desired was applied.
	Applied bool               `json:"applied,omitempty"`
	Moves   []owners.MovedView `json:"moves"`
	Notes   []owners.MoveNote  `json:"notes"`
	// Reason is why it was refused, in a word, if trying again makes no sense.
	Reason ownership.Reason `json:"reason,omitempty"`
	Error  string           `json:"error,omitempty"`
}

func (v MigrationView) with(r ownership.Result) MigrationView {
	v.Changed, v.Skipped, v.Applied = r.Migrated, r.Skipped, r.Applied

	if r.Plan == nil {
		return v
	}

	v.Scopes = r.Plan.Scopes
	if v.Changed {
		v.Moves = owners.MovedViews(r.Plan.Moves)
	}

	v.Notes = owners.MoveNotes(r.Plan.Notes)

	if text := v.whySkipped(); text != "" {
		v.Notes = append(v.Notes, v.remark(text))
	}

	return v
}

// whySkipped says what is not said by nothing having moved.
func (v MigrationView) whySkipped() string {
	switch {
	case v.Skipped == ownership.Absent:
		return "it is no longer there"
	case v.Skipped == ownership.NoScope && len(v.Scopes) == 0:
		return fmt.Sprintf("no part of a %s is moved by default: name one with --scope", v.Object.Kind)
	case v.Skipped == ownership.NoScope:
		return fmt.Sprintf("it has no %s", v.Scopes[0])
	case v.Skipped == ownership.NotNeeded:
		return "what is desired can be applied as things are"
	default:
		return ""
	}
}

// remark is a note that has nothing to do with single fields.
func (v MigrationView) remark(text string) owners.MoveNote {
	return owners.MoveNote{Reason: fields.Reason(v.Skipped), Message: text}
}

// ended says how it ended. What programs read has lists, not null.
func (v MigrationView) ended(err error) MigrationView {
	if err != nil {
		v.Error, v.Reason = err.Error(), ownership.ReasonOf(err)
	}

	v.Scopes, v.Moves, v.Notes = show.List(v.Scopes), show.List(v.Moves), show.List(v.Notes)

	return v
}

// progress says how many of the objects are done, if it takes long.
func (r *MigrationReport) progress(errOut io.Writer, doing string, of int) (stop func()) {
	return render.Progress(errOut, func() string {
		return fmt.Sprintf("%s, %d of %s done", doing, r.done.Load(), show.Count(of, "object"))
	})
}

func (r *MigrationReport) add(v MigrationView) {
	r.Migrations = append(r.Migrations, v)
	r.done.Add(1)

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
func (r *MigrationReport) print(out, errOut io.Writer, to *output.Flags) error {
	if done, err := to.Print(out, "FieldMigration", r); done {
		return err
	}

	rows := [][]string{{render.ColumnKind, render.ColumnNamespace, "NAME", "RESULT", "FIELDS", "FROM"}}
	y := render.StyleOf(errOut, os.Getenv)

	for _, v := range r.Migrations {
		rows = append(rows, []string{v.Object.Kind, v.Object.Namespace, v.Object.Name, r.result(v), strconv.Itoa(v.size()), v.from()})
	}

	to.Table(out, rows)

	for _, v := range r.Migrations {
		for _, n := range v.Notes {
			_, _ = fmt.Fprintf(errOut, "%s: %s\n", render.Clean(v.Object.String()), y.Paint(render.Yellow, render.Clean(n.Message)))
		}

		if v.Error != "" {
			_, _ = fmt.Fprintf(errOut, "%s: %s\n", render.Clean(v.Object.String()), y.Paint(render.Red, render.Clean(v.Error)))
		}
	}

	_, err := fmt.Fprintln(errOut, r.conclusion())
	if r.Record != "" {
		_, err = fmt.Fprintf(errOut, "to put it back: arbor fields undo --record %s\n", render.Clean(r.Record))
	}

	return err
}

func (r *MigrationReport) conclusion() string {
	changed, rest := show.Count(r.Summary.Changed, "object"), fmt.Sprintf("%d unchanged, %d failed", r.Summary.Unchanged, r.Summary.Failed)
	if r.DryRun {
		return changed + " would be changed, " + rest + " (dry run: nothing was written)"
	}

	return changed + " changed, " + rest
}

func (r *MigrationReport) result(v MigrationView) string {
	moved, would := "moved", "would move"
	if v.To == "" {
		moved, would = "put back", "would be put back"
	}

	switch {
	case v.Error != "":
		return "failed"
	case v.Applied && v.Changed:
		return moved + " and applied"
	case v.Applied:
		return "applied"
	case !v.Changed:
		return "unchanged"
	case r.DryRun:
		return would
	default:
		return moved
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
