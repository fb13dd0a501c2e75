package harness

import (
	"fmt"
	"io"
	"strings"
)

// A Result is one figure.
type Result struct {
	Name  string
	Value float64
}

// A Board prints every figure as soon as it is measured, next to its budget, so
// that a run that is interrupted keeps the figures that it has.
type Board struct {
	Laps  int
	Scale int

	out     io.Writer
	budgets map[string]Budget
	format  string // of a line
	broken  []string
	unknown []string
}

// NewBoard returns a board that prints to out.
func NewBoard(out io.Writer, budgets map[string]Budget, laps, scale int) *Board {
	name, unit := len("FIGURE"), len("UNIT")
	for _, b := range budgets {
		name, unit = max(name, len(b.Name)), max(unit, len(b.Unit))
	}
	b := &Board{Laps: laps, Scale: scale, out: out, budgets: budgets, format: fmt.Sprintf("%%-%ds  %%8s  %%-%ds  %%-16s  %%s\n", name, unit)}
	b.line("FIGURE", "VALUE", "UNIT", "BUDGET", "")

	return b
}

// Show prints figures.
func (b *Board) Show(results ...Result) {
	for _, r := range results {
		budget, ok := b.budgets[r.Name]
		if !ok {
			b.unknown = append(b.unknown, r.Name)
		}
		limit, state := budget.limit(), "ok"
		switch {
		case b.Scale > 1:
			limit, state = fmt.Sprintf("scale 1:%d", b.Scale), ""
		case !budget.keeps(r.Value):
			state = "BROKEN"
			b.broken = append(b.broken, r.Name)
		}
		b.line(r.Name, fmt.Sprintf("%.3g", r.Value), budget.Unit, limit, state)
	}
}

func (b *Board) line(columns ...any) {
	_, _ = fmt.Fprintln(b.out, strings.TrimRight(fmt.Sprintf(b.format, columns...), " \n"))
}

// Check returns an error if a budget is broken or missing.
func (b *Board) Check() error {
	switch {
	case len(b.unknown) > 0:
		return fmt.Errorf("there are no budgets for %s", strings.Join(b.unknown, ", "))
	case len(b.broken) > 0:
		return fmt.Errorf("budgets are broken: %s", strings.Join(b.broken, ", "))
	default:
		return nil
	}
}

// A Budget is what a figure may be at most or at least, and why.
type Budget struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Most   *float64 `json:"most,omitempty"`
	Least  *float64 `json:"least,omitempty"`
	Origin string   `json:"origin"`
}

func (b Budget) keeps(value float64) bool {
	return (b.Most == nil || value <= *b.Most) && (b.Least == nil || value >= *b.Least)
}

func (b Budget) limit() string {
	switch {
	case b.Most != nil && b.Least != nil && *b.Most == *b.Least:
		return fmt.Sprintf("exactly %g", *b.Most)
	case b.Most != nil:
		return fmt.Sprintf("at most %g", *b.Most)
	case b.Least != nil:
		return fmt.Sprintf("at least %g", *b.Least)
	default:
		return "for information"
	}
}
