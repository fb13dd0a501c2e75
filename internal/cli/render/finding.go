package render

import (
	"fmt"

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

// FindingRows are a table with one row for each finding, below headers.
func FindingRows(all []show.Finding) [][]string {
	rows := [][]string{{ColumnKind, ColumnNamespace, "NAME", "REASON", "FIELD", "PROBLEM"}}
	for _, f := range all {
		rows = append(rows, []string{f.Object.Kind, f.Object.Namespace, f.Object.Name, f.Reason, f.Field, f.Text()})
	}

	return rows
}
