package ipam

import (
	"fmt"

	"github.com/arbor-control/arbor/internal/identity"
	"github.com/arbor-control/arbor/internal/show"
	"github.com/arbor-control/arbor/internal/show/findings"
)

// A CheckReport is the result of arbor pools check.
type CheckReport struct {
	Findings []show.Finding `json:"findings"`
	Summary  CheckSummary   `json:"summary"`
}

// CheckKind is the kind of the document that a [CheckReport] is.
const CheckKind = "PoolCheck"

// CheckSummary counts the objects and the findings.
type CheckSummary struct {
	Pools      int `json:"pools"`
	Subnets    int `json:"subnets"`
	Claims     int `json:"claims"`
	PoolClaims int `json:"poolClaims"`
	Errors     int `json:"errors"`
	Warnings   int `json:"warnings"`
}

// NewCheckReport returns the report of what was checked, and of what is wrong with it.
func NewCheckReport(s *findings.Survey, wrong []show.Finding) CheckReport {
	r := CheckReport{
		Findings: append([]show.Finding{}, wrong...),
		Summary:  CheckSummary{Pools: len(s.Pools), Subnets: len(s.Subnets), Claims: len(s.Claims), PoolClaims: len(s.PoolClaims)},
	}
	r.Summary.Errors, r.Summary.Warnings = show.CountSeverities(wrong, func(f show.Finding) show.Severity { return f.Severity })

	return r
}

// Refs are the objects with findings.
func (r CheckReport) Refs() []identity.Ref { return show.ObjectsOf(r.Findings) }

// Empty reports whether nothing was checked.
func (s CheckSummary) Empty() bool { return s.Pools+s.Subnets+s.Claims+s.PoolClaims == 0 }

func (s CheckSummary) String() string {
	return fmt.Sprintf("checked %s, %s, %s", show.Count(s.Pools, "pool"), show.Count(s.Subnets, "subnet"), show.Count(s.Claims+s.PoolClaims, "claim"))
}
