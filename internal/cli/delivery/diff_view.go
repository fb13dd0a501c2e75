package delivery

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/arbor-control/arbor/engine/fields"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/rehearsal"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/compositions"
	"github.com/arbor-control/arbor/internal/show/owners"
)

// roleRendered is the role of manifests that were made on this machine.
const roleRendered = "rendered"

// end prints the differences, and ends the command.
func (o *deliveryDiffOptions) end(v rehearsal.DiffView) error {
	if err := o.print(v); err != nil {
		return err
	}

	if v.Summary[rehearsal.ChangeUnknown] > 0 {
		return &command.ExitError{Code: command.ExitBlind}
	}

	return o.Found(v.Summary[rehearsal.ChangeSome]+v.Summary[rehearsal.ChangeNew]+v.Summary[rehearsal.ChangeDeleted]+v.Summary[rehearsal.ChangeRefused]+v.Blocked() > 0)
}

func (o *deliveryDiffOptions) print(v rehearsal.DiffView) error {
	if done, err := o.Print(o.Out, "CompositionPlan", v); done {
		return err
	}

	w := bufio.NewWriter(o.Out)
	y := render.StyleOf(o.Out, os.Getenv)

	for _, d := range v.Objects {
		writeObjectDiff(d, w, y)
	}

	if err := w.Flush(); err != nil {
		return err
	}

	_, err := fmt.Fprintln(o.ErrOut, render.Clean(diffConclusion(v)))

	return err
}

func diffConclusion(v rehearsal.DiffView) string {
	text := "synthesis " + compositions.ShortUUID(v.Synthesis)

	switch {
	case v.Synthesis == "":
		text = v.Role + " manifests"
	case v.Role != "":
		text += " (" + v.Role + ")"
	}

	text += " of " + v.Namespace + "/" + v.Name + inStates(v.Summary, rehearsal.Change.Text)
	if n := v.Blocked(); n > 0 {
		text += "; " + show.Verb(n, "removal", "is blocked", "are blocked")
	}

	return text
}

// writeObjectDiff prints the differences of one object, and then what is to be said of it
// in lines that no tool takes for differences.
func writeObjectDiff(v rehearsal.ObjectDiff, w io.Writer, y render.Style) {
	if v.Diff != "" {
		files := strings.SplitN(v.Diff, "\n", 3)
		_, _ = fmt.Fprintln(w, y.Paint(render.Bold, render.Clean("diff -u -N "+strings.TrimPrefix(files[0], "--- ")+" "+strings.TrimPrefix(files[1], "+++ "))))

		for line := range strings.SplitSeq(strings.TrimSuffix(v.Diff, "\n"), "\n") {
			_, _ = fmt.Fprintln(w, y.Paint(diffColour(line), render.Clean(line)))
		}
	}

	remark := func(colour, text string) {
		_, _ = fmt.Fprintln(w, y.Paint(colour, "# "+render.Clean(v.Object.String()+": "+text)))
	}

	switch v.Change {
	case rehearsal.ChangeRefused:
		remark(render.Red, "the server refuses the apply: "+v.Error)
	case rehearsal.ChangeUnknown:
		remark(render.Red, "cannot be compared: "+v.Error)
	default:
	}

	for _, r := range v.Blocked {
		remark(render.Yellow, "blocked removal: "+r.Path+" "+r.Now.Text("")+afterText(r.After, v.Manager))
	}

	for _, note := range v.Notes {
		remark(render.Yellow, note)
	}
}

// afterText is what becomes of a removal when ownership was moved, if that makes
// a difference.
func afterText(f *owners.FateView, manager string) string {
	if f == nil || f.Fate != fields.Removed {
		return ""
	}

	return "; once " + manager + " owns it: " + f.Text("")
}

func diffColour(line string) string {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return render.Bold
	case strings.HasPrefix(line, "@@"):
		return render.Cyan
	case strings.HasPrefix(line, "-"):
		return render.Red
	case strings.HasPrefix(line, "+"):
		return render.Green
	default:
		return render.Dim
	}
}
