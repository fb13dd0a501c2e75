package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/arbor-control/arbor/internal/stock"
)

// valuesKey is the entry of inputs that holds values.
const valuesKey = "values.yaml"

// values are those of the inputs, merged in their order: maps by their keys, and
// of everything else the last one counts.
func values(inputs []stock.Input) (map[string]any, error) {
	merged := map[string]any{}
	for _, in := range inputs {
		if in.Files == nil {
			return nil, fmt.Errorf("%s is a %s, and only ConfigMaps and Secrets can hold values", in, in.Kind)
		}
		data, ok := in.Files[valuesKey]
		if !ok {
			return nil, fmt.Errorf("%s has no entry %s; it has %q", in, valuesKey, in.Names())
		}
		own, err := loader.LoadValues(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", in, valuesKey, oneLine(err))
		}
		merged = loader.MergeMaps(merged, own)
	}

	return merged, nil
}

// offline wants schemas of values to be complete: Helm would load what they refer
// to.
func offline(c *chart.Chart) error {
	if c.Schema != nil {
		var schema any
		if err := json.Unmarshal(c.Schema, &schema); err != nil {
			return fmt.Errorf("%s/values.schema.json: invalid JSON: %w", c.ChartFullPath(), err)
		}
		own := map[string]bool{}
		collect(schema, "$id", func(id string) { own[document(id)] = true })
		remote := ""
		for _, field := range []string{"$ref", "$dynamicRef", "$schema"} {
			collect(schema, field, func(ref string) {
				if isRemote(ref) && !own[document(ref)] && remote == "" {
					remote = ref
				}
			})
		}
		if remote != "" {
			return fmt.Errorf("%s/values.schema.json: %s is remote, and remote schemas cannot be used: put it into $defs", c.ChartFullPath(), remote)
		}
	}
	for _, d := range c.Dependencies() {
		if err := offline(d); err != nil {
			return err
		}
	}

	return nil
}

// isRemote reports whether a schema would have to be loaded. Those of JSON Schema
// itself are built in.
func isRemote(ref string) bool {
	at, ok := strings.CutPrefix(strings.Replace(ref, "https://", "http://", 1), "http://")

	return ok && !strings.HasPrefix(at, "json-schema.org/")
}

// document is a reference without the place in the document.
func document(ref string) string {
	at, _, _ := strings.Cut(ref, "#")

	return at
}

// collect calls a function for all strings of a field, however deep.
func collect(value any, field string, found func(string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok && key == field {
				found(text)
			}
			collect(inner, field, found)
		}
	case []any:
		for _, inner := range v {
			collect(inner, field, found)
		}
	}
}
