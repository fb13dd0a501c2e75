package fields_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/engine/fields"
)

// object reads YAML as an object from the API.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}

	return o
}

// set reads a set as entries have it, but in YAML.
func set(t testing.TB, text string) *fieldpath.Set {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := fields.ParseFields(data)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// applied and updated are entries in version v1.
func applied(t testing.TB, manager, text string) fields.Entry {
	t.Helper()

	return fields.Entry{Manager: manager, Operation: fields.Apply, APIVersion: "v1", Fields: set(t, text)}
}

func updated(t testing.TB, manager, text string) fields.Entry {
	t.Helper()

	return fields.Entry{Manager: manager, Operation: fields.Update, APIVersion: "v1", Fields: set(t, text)}
}

// show writes entries for comparison: one line for each path.
func show(es fields.Entries) map[string][]string {
	all := map[string][]string{}
	for _, e := range es {
		id := e.Identity().String()
		if e.Operation == fields.Apply && e.APIVersion != "v1" {
			id += " in " + e.APIVersion
		}
		all[id] = append(all[id], fields.FormatPaths(e.Fields)...)
	}

	return all
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

var options = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b fieldpath.Path) bool { return a.Equals(b) }),
	cmp.Comparer(func(a, b *fieldpath.Set) bool {
		return cmp.Equal(fields.FormatPaths(a), fields.FormatPaths(b), cmpopts.EquateEmpty())
	}),
}

func diff(t testing.TB, reason string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, options); d != "" {
		t.Errorf("%s: -want, +got:\n%s", reason, d)
	}
}

func texts[T interface{ String() string }](all []T) []string {
	var out []string
	for _, one := range all {
		out = append(out, one.String())
	}

	return out
}

func replaced(text, from, to string) string { return strings.ReplaceAll(text, from, to) }
