package render

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/arbor-control/arbor/internal/show"
)

// FindingLine returns a finding as compilers write theirs.
func FindingLine(l show.Located, s Style) string {
	where := Clean(l.File)
	if l.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, l.Line)
	}

	return s.Paint(Bold, where+":") + " " + s.Severity(l.Severity, string(l.Severity)+":") + " " + Clean(Sentence(l))
}

// Sentence returns a finding without its file and line.
func Sentence(l show.Located) string {
	subject := ""
	if l.Object.Kind != "" {
		subject = l.Object.String() + ": "
	}

	if l.Field != "" {
		subject += l.Field + ": "
	}

	return subject + l.Text()
}

// FindingCount says how many findings there are.
func FindingCount(errs, warnings int, s Style) string {
	worst := show.SeverityWarning
	if errs > 0 {
		worst = show.SeverityError
	}

	return s.Severity(worst, show.Count(errs, "error")+", "+show.Count(warnings, "warning"))
}

// FindingTable has one row per finding. Colour is left out, because it would
// count as width.
func FindingTable(out io.Writer, all []show.Finding) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "KIND\tNAMESPACE\tNAME\tREASON\tFIELD\tPROBLEM")

	for _, f := range all {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n",
			Clean(f.Object.Kind), Clean(f.Object.Namespace), Clean(f.Object.Name), f.Reason, Clean(f.Field), Clean(f.Text()))
	}

	return w.Flush()
}
