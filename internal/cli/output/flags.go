package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/cli/render"
)

// Formats of output. Every command has JSON, YAML and JSONPath.
const (
	// Tree is a drawing.
	Tree = "tree"
	// Table is a flat list with one line for each object, below headers.
	Table = "table"
	// Wide is a table, or a drawing, with more in it.
	Wide = "wide"
	// JSON and YAML are documents with an apiVersion and a kind.
	JSON = "json"
	YAML = "yaml"
	// Name is one line of resource/name for each object.
	Name = "name"
	// JSONPath is a template for the JSON document, as in jsonpath={.groups[*].name}.
	JSONPath = "jsonpath"
	// Text is the former name of the default format, which every command accepts. Commands that have it as
	// their default accept Table in its place.
	Text = "text"
)

// Flags are the values of the flags.
type Flags struct {
	// Format is one of the formats of the command.
	Format string
	// Watch repeats the command until it is interrupted.
	Watch bool
	// Depth is the number of levels to draw, 0 for all.
	Depth int

	noHeaders bool
	exitCode  bool
	selector  string
	width     int

	formats []string
	matches labels.Selector
	path    printers.ResourcePrinter
}

// Add adds -o with the formats of a command, of which the first is the default, and --no-headers if one of
// them is a table. JSON, YAML and JSONPath come in addition.
func (f *Flags) Add(cmd *cobra.Command, formats ...string) {
	f.formats = formats
	for _, always := range []string{JSON, YAML} {
		if !slices.Contains(f.formats, always) {
			f.formats = append(f.formats, always)
		}
	}

	names := append(slices.Clone(f.formats), JSONPath+"=TEMPLATE")
	last := len(names) - 1
	cmd.Flags().StringVarP(&f.Format, "output", "o", f.formats[0], "output format: "+strings.Join(names[:last], ", ")+" or "+names[last])
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(append(slices.Clone(f.formats), JSONPath+"="), cobra.ShellCompDirectiveNoFileComp)) // the flag was just added

	if slices.Contains(formats, Table) {
		cmd.Flags().BoolVar(&f.noHeaders, "no-headers", false, "print tables without their headers")
	}
}

// AddWatch adds -w.
func (f *Flags) AddWatch(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.Watch, "watch", "w", false, "print again whenever the output changes, until interrupted")
}

// AddExitCode adds --exit-code. The default is what the command does without it; found is what it exits with 1 for.
func (f *Flags) AddExitCode(cmd *cobra.Command, byDefault bool, found string) {
	cmd.Flags().BoolVar(&f.exitCode, "exit-code", byDefault, "exit with 1 if "+found)
}

// AddSelector adds -l for the labels of some objects.
func (f *Flags) AddSelector(cmd *cobra.Command, objects string) {
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "only "+objects+" with these labels, as in app=web,tier!=test")
}

// AddWidth adds --width.
func (f *Flags) AddWidth(cmd *cobra.Command) { command.AddWidth(cmd, &f.width) }

// AddDepth adds --depth for the levels of something.
func (f *Flags) AddDepth(cmd *cobra.Command, levels string) {
	cmd.Flags().IntVar(&f.Depth, "depth", render.DefaultDepth, levels+" to draw, 0 for all")
}

// Check finds wrong values, and must be called before anything else.
func (f *Flags) Check() error {
	var err error
	if f.matches, err = labels.Parse(f.selector); err != nil {
		return command.Blind("invalid selector %q: %w", f.selector, err)
	}
	if f.Format == Text || f.Format == Table && f.formats[0] == Text {
		f.Format = f.formats[0]
	}
	if slices.Contains(f.formats, f.Format) {
		return nil
	}
	if strings.HasPrefix(f.Format, JSONPath) {
		if f.path, err = genericclioptions.NewJSONPathPrintFlags("", true).ToPrinter(f.Format); err != nil {
			return command.Blind("cannot use -o %s: %w", f.Format, err)
		}

		return nil
	}

	return command.Blind("unknown output format %q: use one of %s, %s=TEMPLATE", f.Format, strings.Join(f.formats, ", "), JSONPath)
}

// Matches reports whether the labels of an object are asked for.
func (f *Flags) Matches(of map[string]string) bool {
	return f.matches == nil || f.matches.Matches(labels.Set(of))
}

// Selects reports whether only some objects are asked for.
func (f *Flags) Selects() bool { return f.selector != "" }

// Is reports whether the format is one of some.
func (f *Flags) Is(formats ...string) bool { return slices.Contains(formats, f.Format) }

// Columns is the width to draw in.
func (f *Flags) Columns(w io.Writer, getenv func(string) string) int {
	if f.width > 0 {
		return f.width
	}

	return render.WidthOf(w, getenv)
}

// Table writes rows in columns. The first row are the headers.
func (f *Flags) Table(w io.Writer, rows [][]string) {
	if f.noHeaders {
		rows = rows[1:]
	}
	if len(rows) > 0 {
		render.WriteTable(w, rows)
	}
}

// Problem is the end of a command that found a problem, which is printed either way.
func (f *Flags) Problem(errOut io.Writer, problem error) error {
	if f.exitCode && !f.Watch {
		return &command.ExitError{Code: command.ExitFound, Err: problem}
	}
	_, err := fmt.Fprintln(errOut, problem)

	return err
}

// Found is the end of a command that may have found something, as --exit-code asks for.
func (f *Flags) Found(something bool) error {
	if something && f.exitCode {
		return command.Found()
	}

	return nil
}
