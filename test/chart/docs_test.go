package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/test/cluster"
)

var (
	// rows are those of tables of values: the first cell names some of them.
	rows = regexp.MustCompile("(?m)^\\| (`[a-zA-Z.]+`(?:, `[a-zA-Z.]+`)*) \\|")
	name = regexp.MustCompile("`([a-zA-Z.]+)`")
)

// documentedValues are those that the tables of docs/tasks/install.md name. One that begins with a dot
// has the prefix of the one before it.
func documentedValues(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "tasks", "install.md"))
	must(t, err)
	_, text, _ := strings.Cut(string(data), "\n## Values\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var all []string
	for _, row := range rows.FindAllStringSubmatch(text, -1) {
		prefix := ""
		for _, m := range name.FindAllStringSubmatch(row[1], -1) {
			path := m[1]
			if strings.HasPrefix(path, ".") {
				path = prefix + path
			}
			prefix = path[:max(0, strings.LastIndex(path, "."))]
			all = append(all, path)
		}
	}

	return all
}

// leaves are the paths of all values that are not maps, or empty ones.
func leaves(prefix string, value any) []string {
	inner, ok := value.(map[string]any)
	if !ok || len(inner) == 0 {
		return []string{prefix}
	}
	var all []string
	for key, v := range inner {
		all = append(all, leaves(strings.TrimPrefix(prefix+"."+key, "."), v)...)
	}

	return all
}

// Every value of the chart is in a table of docs/tasks/install.md, and every one there is a value.
func TestValuesAreDocumented(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(cluster.Chart(), "values.yaml"))
	must(t, err)
	var values map[string]any
	must(t, yaml.Unmarshal(data, &values))
	documented, all := documentedValues(t), leaves("", values)
	slices.Sort(all)
	for _, path := range all {
		if !slices.ContainsFunc(documented, func(d string) bool { return path == d || strings.HasPrefix(path, d+".") }) {
			t.Errorf("docs/tasks/install.md does not explain the value %s", path)
		}
	}
	for _, d := range documented {
		if !slices.ContainsFunc(all, func(path string) bool { return path == d || strings.HasPrefix(path, d+".") }) {
			t.Errorf("docs/tasks/install.md explains the value %s, and the chart has none of that name", d)
		}
	}
	for i, d := range documented {
		if slices.Contains(documented[:i], d) {
			t.Errorf("docs/tasks/install.md explains the value %s twice", d)
		}
	}
}
