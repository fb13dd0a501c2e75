package main

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/bench/harness"
)

//go:embed budgets.yaml
var budgetsFile []byte

func readBudgets() (map[string]harness.Budget, error) {
	var list []harness.Budget
	if err := yaml.UnmarshalStrict(budgetsFile, &list); err != nil {
		return nil, fmt.Errorf("cannot read budgets.yaml: %w", err)
	}
	all := map[string]harness.Budget{}
	for _, b := range list {
		if _, twice := all[b.Name]; twice || b.Origin == "" || b.Unit == "" {
			return nil, fmt.Errorf("budget %q stands twice, or lacks its unit or origin", b.Name)
		}
		all[b.Name] = b
	}

	return all, nil
}
