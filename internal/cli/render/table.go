package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Headers of columns that several tables have.
const (
	ColumnKind      = "KIND"
	ColumnNamespace = "NAMESPACE"
)

// WriteTable writes rows in columns. The last one is not filled up, and no line
// ends in spaces.
func WriteTable(w io.Writer, rows [][]string) {
	const between = 3

	widths := make([]int, len(rows[0]))

	for _, row := range rows {
		for i := range row {
			row[i] = Clean(row[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}

	for _, row := range rows {
		var line strings.Builder
		for i, text := range row {
			line.WriteString(text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+between))
		}

		_, _ = fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
