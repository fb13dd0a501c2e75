package main

import (
	"fmt"
	"io"
	"strings"
)

// A result is one figure.
type result struct {
	name  string
	value float64
}

// A board prints every figure as soon as it is measured, next to its budget, so
// that a run that is interrupted keeps the figures that it has.
type board struct {
	laps  int
	scale int

	out     io.Writer
	budgets map[string]budget
	format  string // of a line
	broken  []string
	unknown []string
}

func newBoard(out io.Writer, budgets map[string]budget, laps, scale int) *board {
	name, unit := len("FIGURE"), len("UNIT")
	for _, b := range budgets {
		name, unit = max(name, len(b.Name)), max(unit, len(b.Unit))
	}
	b := &board{laps: laps, scale: scale, out: out, budgets: budgets, format: fmt.Sprintf("%%-%ds  %%8s  %%-%ds  %%-16s  %%s\n", name, unit)}
	b.line("FIGURE", "VALUE", "UNIT", "BUDGET", "")

	return b
}

// show prints figures.
func (b *board) show(results ...result) {
	for _, r := range results {
		budget, ok := b.budgets[r.name]
		if !ok {
			b.unknown = append(b.unknown, r.name)
		}
		limit, state := budget.limit(), "ok"
		switch {
		case b.scale > 1:
			limit, state = fmt.Sprintf("scale 1:%d", b.scale), ""
		case !budget.keeps(r.value):
			state = "BROKEN"
			b.broken = append(b.broken, r.name)
		}
		b.line(r.name, fmt.Sprintf("%.3g", r.value), budget.Unit, limit, state)
	}
}

func (b *board) line(columns ...any) {
	_, _ = fmt.Fprintln(b.out, strings.TrimRight(fmt.Sprintf(b.format, columns...), " \n"))
}

// verdict returns an error if a budget is broken or missing.
func (b *board) verdict() error {
	switch {
	case len(b.unknown) > 0:
		return fmt.Errorf("there are no budgets for %s", strings.Join(b.unknown, ", "))
	case len(b.broken) > 0:
		return fmt.Errorf("budgets are broken: %s", strings.Join(b.broken, ", "))
	default:
		return nil
	}
}
