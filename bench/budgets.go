package main

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed budgets.yaml
var budgetsFile []byte

// A budget is what a figure may be at most or at least, and why.
type budget struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"`
	Most   *float64 `json:"most,omitempty"`
	Least  *float64 `json:"least,omitempty"`
	Origin string   `json:"origin"`
}

func (b budget) keeps(value float64) bool {
	return (b.Most == nil || value <= *b.Most) && (b.Least == nil || value >= *b.Least)
}

func (b budget) limit() string {
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

func readBudgets() (map[string]budget, error) {
	var list []budget
	if err := yaml.UnmarshalStrict(budgetsFile, &list); err != nil {
		return nil, fmt.Errorf("cannot read budgets.yaml: %w", err)
	}
	all := map[string]budget{}
	for _, b := range list {
		if _, twice := all[b.Name]; twice || b.Origin == "" || b.Unit == "" {
			return nil, fmt.Errorf("budget %q stands twice, or lacks its unit or origin", b.Name)
		}
		all[b.Name] = b
	}

	return all, nil
}
