package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Output formats.
const (
	formatText  = "text"
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// Headers of columns that several tables have.
const (
	columnKind      = "KIND"
	columnNamespace = "NAMESPACE"
)

// checkFormat says whether a command knows an output format.
func checkFormat(format string, known ...string) error {
	if slices.Contains(known, format) {
		return nil
	}

	return blind("unknown output format %q: use one of %s", format, strings.Join(known, ", "))
}

// printMachine prints a value as JSON or YAML and is false for other formats.
func printMachine(w io.Writer, format string, v any) (bool, error) {
	var (
		out []byte
		err error
	)

	switch format {
	case formatJSON:
		out, err = json.MarshalIndent(v, "", "  ")
		out = append(out, '\n')
	case formatYAML:
		out, err = yaml.Marshal(v)
	default:
		return false, nil
	}

	if err != nil {
		return true, fmt.Errorf("cannot write %s: %w", format, err)
	}

	_, err = w.Write(out)

	return true, err
}

// count writes a number with its noun: 1 file, 2 files.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

// writeTable writes rows in columns. The last one is not filled up, and no line
// ends in spaces.
func writeTable(w io.Writer, rows [][]string) {
	const between = 3

	widths := make([]int, len(rows[0]))

	for _, row := range rows {
		for i := range row {
			row[i] = clean(row[i])
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
