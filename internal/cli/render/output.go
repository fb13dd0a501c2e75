package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/cli/command"
)

// Output formats.
const (
	FormatText  = "text"
	FormatTable = "table"
	FormatWide  = "wide"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
)

// CheckFormat says whether a command knows an output format.
func CheckFormat(format string, known ...string) error {
	if slices.Contains(known, format) {
		return nil
	}

	return command.Blind("unknown output format %q: use one of %s", format, strings.Join(known, ", "))
}

// PrintMachine prints a value as JSON or YAML and is false for other formats.
func PrintMachine(w io.Writer, format string, v any) (bool, error) {
	var (
		out []byte
		err error
	)

	switch format {
	case FormatJSON:
		out, err = json.MarshalIndent(v, "", "  ")
		out = append(out, '\n')
	case FormatYAML:
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

// FormatTree is the drawing where table is something else.
const FormatTree = "tree"
