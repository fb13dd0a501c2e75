package ipam

import "github.com/arbor-control/arbor/internal/decide/ipam/transfer"

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

// NewImportReport returns the report of steps that are not taken yet.
func NewImportReport(steps []transfer.Step) *ImportReport {
	r := &ImportReport{Objects: []ImportedObject{}}

	for _, s := range steps {
		o := ImportedObject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, CIDR: s.CIDR, Result: ResultPlanned, Message: s.Conflict}

		switch {
		case s.Conflict != "":
			o.Result = ResultConflict
		case s.Exists:
			o.Result = ResultSame
		case s.Waits != "":
			o.Message = "waits because " + s.Waits
		}

		r.Objects = append(r.Objects, o)
	}

	r.Count()

	return r
}

// Count counts the objects by result.
func (r *ImportReport) Count() {
	counts := map[string]int{}
	for _, o := range r.Objects {
		counts[o.Result]++
	}

	r.Summary = ImportSummary{
		Planned: counts[ResultPlanned], Created: counts[ResultCreated], Unchanged: counts[ResultSame],
		Conflicts: counts[ResultConflict], Failed: counts[ResultFailed],
	}
}

// Results of a migration and of an import, as tables and JSON show them.
const (
	ResultPlanned  = "to create"
	ResultCreated  = "created"
	ResultSame     = "unchanged"
	ResultConflict = "conflict"
	ResultFailed   = "failed"
)
