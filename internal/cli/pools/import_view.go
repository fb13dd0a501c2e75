package pools

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/arbor-control/arbor/internal/cli/render"
	"github.com/arbor-control/arbor/internal/decide/ipam/transfer"
	"github.com/arbor-control/arbor/internal/show"
)

// An ImportReport is the result of arbor pools import.
type ImportReport struct {
	Objects []ImportedObject `json:"objects"`
	// DryRun is true if nothing was created.
	DryRun  bool          `json:"dryRun"`
	Summary ImportSummary `json:"summary"`
}

// An ImportedObject is what became of one object.
type ImportedObject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	CIDR      string `json:"cidr"`
	Result    string `json:"result"`
	// Message is why it cannot be created, or why a claim waits after its creation.
	Message string `json:"message"`
}

// ImportSummary counts the objects by result.
type ImportSummary struct {
	Planned   int `json:"planned"`
	Created   int `json:"created"`
	Unchanged int `json:"unchanged"`
	Conflicts int `json:"conflicts"`
	Failed    int `json:"failed"`
}

func newImportReport(steps []transfer.Step) *ImportReport {
	r := &ImportReport{Objects: []ImportedObject{}}

	for _, s := range steps {
		o := ImportedObject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, CIDR: s.CIDR, Result: resultPlanned, Message: s.Conflict}

		switch {
		case s.Conflict != "":
			o.Result = resultConflict
		case s.Exists:
			o.Result = resultSame
		case s.Waits != "":
			o.Message = "waits because " + s.Waits
		}

		r.Objects = append(r.Objects, o)
	}

	r.count()

	return r
}

func (r *ImportReport) count() {
	counts := map[string]int{}
	for _, o := range r.Objects {
		counts[o.Result]++
	}

	r.Summary = ImportSummary{
		Planned: counts[resultPlanned], Created: counts[resultCreated], Unchanged: counts[resultSame],
		Conflicts: counts[resultConflict], Failed: counts[resultFailed],
	}
}

// print shows a table of all objects but the unchanged ones.
func (r *ImportReport) print(out, errOut io.Writer, format string, skipConflicts bool) error {
	if done, err := render.PrintMachine(out, format, r); done {
		return err
	}

	rows := [][]string{{render.ColumnKind, render.ColumnNamespace, "NAME", "CIDR", "RESULT"}}

	for _, o := range r.Objects {
		if o.Result != resultSame {
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
