package pools

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/ipam"
)

// print shows a table of all objects but the unchanged ones.
func (o *poolsImportOptions) print(r *ipam.ImportReport) error {
	if done, err := o.output.Print(o.Out, "PoolImport", r); done {
		return err
	}

	rows := [][]string{{render.ColumnKind, render.ColumnNamespace, "NAME", "CIDR", "RESULT"}}

	for _, i := range r.Objects {
		if i.Result != ipam.ResultSame {
			rows = append(rows, []string{i.Kind, i.Namespace, i.Name, i.CIDR, withMessage(i.Result, i.Message)})
		}
	}

	if len(rows) > 1 {
		o.output.Table(o.Out, rows)
	}

	s := r.Summary
	text := fmt.Sprintf("%s created, %d unchanged, %s, %d failed", show.Count(s.Created, "object"), s.Unchanged, show.Count(s.Conflicts, "conflict"), s.Failed)

	switch {
	case r.DryRun && s.Conflicts > 0 && !o.skipConflicts:
		text = fmt.Sprintf("%s to create, %d unchanged, %s: nothing was written; fix them, or leave them out with --skip-conflicts", show.Count(s.Planned, "object"), s.Unchanged, show.Count(s.Conflicts, "conflict"))
	case r.DryRun:
		text = fmt.Sprintf("%s to create, %d unchanged, %s (dry run: nothing was written)", show.Count(s.Planned, "object"), s.Unchanged, show.Count(s.Conflicts, "conflict"))
	}

	_, err := fmt.Fprintln(o.ErrOut, text)

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
