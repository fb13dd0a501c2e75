package release

import (
	"slices"
	"testing"
)

// Clauses returns the names of the clauses of both rules.
func Clauses() (ofClaimed, ofBacking []string) { return names(claimed), names(backing) }

func names(clauses []clause) []string {
	all := make([]string, len(clauses))
	for i, c := range clauses {
		all[i] = c.name
	}

	return all
}

// WithoutClaimed removes a clause about Subnets of claims during a test.
func WithoutClaimed(t *testing.T, name string) {
	t.Helper()
	without(t, &claimed, name)
}

// WithoutBacking removes a clause about backing Subnets during a test.
func WithoutBacking(t *testing.T, name string) {
	t.Helper()
	without(t, &backing, name)
}

func without(t *testing.T, rule *[]clause, name string) {
	t.Helper()
	all := *rule
	*rule = slices.DeleteFunc(slices.Clone(all), func(c clause) bool { return c.name == name })
	if len(*rule) == len(all) {
		t.Fatalf("there is no clause %s", name)
	}
	t.Cleanup(func() { *rule = all })
}
