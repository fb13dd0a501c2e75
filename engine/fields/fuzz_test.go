package fields_test

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/arbor-control/arbor/engine/fields"
)

// FuzzParseScope checks that a scope has one text, from which the same scope is read.
func FuzzParseScope(f *testing.F) {
	for _, text := range []string{
		"", "*", "spec.template.spec.initContainers[name=base-os-bash]", "a[name=~^aks-]", "a[port=80,protocol=TCP]", "a.*[*]",
		`metadata.annotations."a.b/c"`, `metadata.annotations["a.b/c"]`, `a[="x"]`, `a[=~"[x]"]`, `a["b"="c"]`, `a[=~]`, "a[b=~(]", "[", "a.", `"`, "a\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := fields.ParseScope(text)
		if err != nil {
			if e := new(fields.SyntaxError); !errors.As(err, &e) || e.Offset > len(text) || e.Want == "" {
				t.Errorf("%q: %v", text, err)
			}

			return
		}
		again, err := fields.ParseScope(s.String())
		if err != nil || again.String() != s.String() {
			t.Errorf("%q is written %q, which is read as %q, error %v", text, s, again, err)
		}
		p := path("spec", "containers", keys("name", "web"), "image")
		if again.Matches(p) != s.Matches(p) {
			t.Errorf("%q and %q differ in whether they match %s", text, s, p)
		}
	})
}

// FuzzReadList checks that every list that can be read can be written and read again, that each of
// its paths is a scope that matches it, and that nothing panics.
func FuzzReadList(f *testing.F) {
	f.Add(`[{"manager":"eno","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:a":{".":{},"k:{\"name\":\"x\"}":{".":{},"f:b":{}},"v:\"x\"":{}}}}}]`,
		`{"apiVersion":"v1","spec":{"a":[{"name":"x","b":1},{"name":"y"},"x"]}}`, "spec.a[name=x]")
	f.Add(`[{"manager":"eno","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"k:null":{},"i:3":{},"v:{}":{"f:":{}}}}]`, `[]`, "*")
	f.Add(`[{"fieldsV1":{"k:{":{}}},3,{"fieldsType":"x"}]`, `{"apiVersion":"v1"}`, "a")
	f.Add(`[{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{}}}}]`, `{"apiVersion":"v1","metadata":{"labels":{"a":"b"}}}`, "metadata.labels.a")
	f.Fuzz(func(t *testing.T, list, object, text string) {
		var raw, live any
		if json.Unmarshal([]byte(list), &raw) != nil || json.Unmarshal([]byte(object), &live) != nil {
			return
		}
		es, err := fields.ReadList(raw)
		if d := (fields.Defects{}); err != nil && !errors.As(err, &d) {
			t.Errorf("error %v is not a list of defects", err)
		}
		for _, e := range es {
			if e.Fields != nil {
				e.Fields.Iterate(func(p fieldpath.Path) { checkPath(t, p) })
			}
		}
		if err == nil && utf8.ValidString(list) {
			var again fields.Entries
			if err := json.Unmarshal([]byte(mustJSON(t, es)), &again); err != nil || !fields.Equal(es, again) {
				t.Errorf("%s is written %s, error %v", list, mustJSON(t, es), err)
			}
		}
		scope, err := fields.ParseScope(text)
		if err != nil {
			return
		}
		everything(t, live, es, scope)
	})
}

// checkPath reads a path as a scope. Positions, and keys without anything, are
// not read.
func checkPath(t *testing.T, p fieldpath.Path) {
	t.Helper()
	for _, pe := range p {
		if pe.Index != nil || pe.Key != nil && len(*pe.Key) == 0 {
			return
		}
	}
	text := fields.FormatPath(p)
	s, err := fields.ParseScope(text)
	if err != nil {
		t.Errorf("%s is written %s, which cannot be read: %v", p, text, err)
	} else if !isOdd(p) && !s.Matches(p) {
		t.Errorf("%s is written %s, which does not match it", p, text)
	}
}

// isOdd is true for paths with keys that are not scalars.
func isOdd(p fieldpath.Path) bool {
	for _, pe := range p {
		if pe.Value != nil && ((*pe.Value).IsMap() || (*pe.Value).IsList()) {
			return true
		}
		if pe.Key == nil {
			continue
		}
		for _, f := range *pe.Key {
			if f.Value.IsMap() || f.Value.IsList() {
				return true
			}
		}
	}

	return false
}

func everything(t *testing.T, live any, es fields.Entries, scope fields.Scope) {
	t.Helper()
	tree := fields.New(live, es)
	tree.CheckOwnership(scope, "eno")
	desired := tree.Desired(live)
	for _, r := range tree.Removals("eno", desired, nil) {
		_ = r.String()
	}
	for _, mode := range []fields.Mode{fields.Needed, fields.Whole} {
		p, err := fields.NewPlan(live, es, fields.Request{To: "eno", Scope: scope, Mode: mode, Next: desired, Retag: true})
		if err != nil {
			continue
		}
		texts(p.Notes)
		if err := p.Entries.Check(); err != nil {
			t.Errorf("the server would not take the entries: %v", err)
		}
		if _, err := fields.Undo(live, p.Entries, p.Record()); err != nil {
			t.Error(err)
		}
	}
}
