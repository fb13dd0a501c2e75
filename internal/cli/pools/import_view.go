package pools

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

// printImport shows a table of all objects but the unchanged ones.
func printImport(r *ipam.ImportReport, out, errOut io.Writer, format string, skipConflicts bool) error {
	if done, err := render.PrintMachine(out, format, r); done {
		return err
	}

	rows := [][]string{{render.ColumnKind, render.ColumnNamespace, "NAME", "CIDR", "RESULT"}}

	for _, o := range r.Objects {
		if o.Result != ipam.ResultSame {
			rows = append(rows, []string{o.Kind, o.Namespace, o.Name, o.CIDR, withMessage(o.Result, o.Message)})
		}
	}

	if len(rows) > 1 {
		render.WriteTable(out, rows)
	}

	s := r.Summary
	text := fmt.Sprintf("%s created, %d unchanged, %s, %d failed", show.Count(s.Created, "object"), s.Unchanged, show.Count(s.Conflicts, "conflict"), s.Failed)

	switch {
	case r.DryRun && s.Conflicts > 0 && !skipConflicts:
		text = fmt.Sprintf("%s to create, %d unchanged, %s: nothing was written; fix them, or leave them out with --skip-conflicts", show.Count(s.Planned, "object"), s.Unchanged, show.Count(s.Conflicts, "conflict"))
	case r.DryRun:
		text = fmt.Sprintf("%s to create, %d unchanged, %s (dry run: nothing was written)", show.Count(s.Planned, "object"), s.Unchanged, show.Count(s.Conflicts, "conflict"))
	}

	_, err := fmt.Fprintln(errOut, text)

	return err
}

func withMessage(result, message string) string {
	if message == "" {
		return result
	}

	return result + ": " + message
}

func setNamespace(obj map[string]any, namespace string) {
	(&unstructured.Unstructured{Object: obj}).SetNamespace(namespace)
}
