package fields_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/engine/fields"
)

func TestReadList(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   any
		want   map[string][]string
		errors []string
	}{
		"Nothing":   {reason: "an object need not have entries", list: nil, want: map[string][]string{}},
		"EmptyList": {reason: "an empty list has none either", list: []any{}, want: map[string][]string{}},
		"Good": {
			reason: "an entry as the API has it",
			list: []any{map[string]any{
				"manager": "eno", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}},
			}},
			want: map[string][]string{"eno (Apply)": {"spec.replicas"}},
		},
		"NoTime": {
			reason: "a time may be missing or null",
			list: []any{map[string]any{
				"manager": "eno", "operation": "Apply", "apiVersion": "v1", "time": nil, "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:a": map[string]any{}},
			}},
			want: map[string][]string{"eno (Apply)": {"a"}},
		},
		"NoManager": {
			reason: "a manager without a name is one too",
			list: []any{map[string]any{
				"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:a": map[string]any{}},
			}},
			want: map[string][]string{" (Update v1)": {"a"}},
		},
		"NoFields": {
			reason: "no fields are the empty set",
			list:   []any{map[string]any{"manager": "eno", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}},
			want:   map[string][]string{"eno (Apply)": nil},
		},
		"UnknownElements": {
			reason: "unknown members are skipped, as the server does",
			list: []any{map[string]any{
				"manager": "eno", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:a": map[string]any{}, "x:b": map[string]any{}},
			}},
			want: map[string][]string{"eno (Apply)": {"a"}},
		},
		"NoAPIVersion": {
			reason: "its fields can be shown, but the server would ignore a list with it",
			list: []any{map[string]any{
				"manager": "eno", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:a": map[string]any{}},
			}},
			want:   map[string][]string{"eno (Apply) in ": {"a"}},
			errors: []string{`cannot use managedFields[0] of manager "eno": it has no apiVersion`},
		},
		"NoFieldsType": {
			reason: "the server cannot apply to an object with such an entry",
			list: []any{map[string]any{
				"manager": "eno", "operation": "Apply", "apiVersion": "v1", "fieldsV1": map[string]any{"f:a": map[string]any{}},
			}},
			want:   map[string][]string{"eno (Apply)": {"a"}},
			errors: []string{`cannot use managedFields[0] of manager "eno": it has no fieldsType`},
		},
		"OtherFieldsType": {
			reason: "a set in an unknown format is not read",
			list: []any{map[string]any{
				"manager": "eno", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2", "fieldsV1": map[string]any{},
			}},
			want:   map[string][]string{},
			errors: []string{`cannot use managedFields[0] of manager "eno": its fieldsType is "FieldsV2", and only FieldsV1 is known`},
		},
		"BadOperation": {
			reason: "there are two operations, in that case",
			list: []any{map[string]any{
				"manager": "eno", "operation": "apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:a": map[string]any{}},
			}},
			want:   map[string][]string{"eno (apply v1)": {"a"}},
			errors: []string{`cannot use managedFields[0] of manager "eno": its operation is "apply", which is neither Apply nor Update`},
		},
		"BadFields": {
			reason: "an entry that cannot be read is left out, and those after it are read",
			list: []any{
				map[string]any{
					"manager": "bad", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"k:{": map[string]any{}},
				},
				map[string]any{
					"manager": "flat", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": []any{},
				},
				map[string]any{
					"manager": "good", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"f:a": map[string]any{}},
				},
			},
			want: map[string][]string{"good (Update v1)": {"a"}},
			errors: []string{
				`cannot use managedFields[0] of manager "bad": cannot read fields`,
				`cannot use managedFields[1] of manager "flat": cannot read fields: they are not a JSON object`,
			},
		},
		"NotObjects": {
			reason: "an element that is not an entry is named by its position",
			list:   []any{"eno", map[string]any{"manager": "eno", "operation": 7.0}},
			want:   map[string][]string{},
			errors: []string{
				`cannot use managedFields[0] of manager "": it is not an entry: it is a string`,
				`cannot use managedFields[1] of manager "eno": it is not an entry: its operation is a float64`,
			},
		},
		"NotAList": {
			reason: "the list itself can be something else",
			list:   map[string]any{},
			want:   map[string][]string{},
			errors: []string{"cannot use managedFields: it is not a list but a map[string]interface {}"},
		},
		"SeveralDefects": {
			reason: "all defects are reported at once",
			list:   []any{map[string]any{"manager": "eno"}},
			want:   map[string][]string{"eno ()": nil},
			errors: []string{
				`cannot use managedFields[0] of manager "eno": it has no apiVersion`,
				`cannot use managedFields[0] of manager "eno": its operation is "", which is neither Apply nor Update`,
				`cannot use managedFields[0] of manager "eno": it has no fieldsType`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := fields.Read(map[string]any{"metadata": map[string]any{"managedFields": tc.list}})
			diff(t, tc.reason, tc.want, show(got))
			var found fields.Defects
			if errors.As(err, &found) != (len(tc.errors) > 0) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			var all []string
			for _, d := range found {
				text, _, _ := strings.Cut(d.Error(), ": parsing key") // the rest is the decoder's own
				all = append(all, text)
			}
			diff(t, tc.reason, tc.errors, all)
		})
	}
}

func TestReadWithoutMetadata(t *testing.T) {
	for _, o := range []any{nil, "text", map[string]any{}, map[string]any{"metadata": 3}} {
		if got, err := fields.Read(o); len(got) > 0 || err != nil {
			t.Errorf("Read(%v) = %v, %v", o, got, err)
		}
	}
}

func TestDefectCanBeFound(t *testing.T) {
	_, err := fields.ReadList([]any{map[string]any{"manager": "eno", "operation": "Apply", "fieldsType": "FieldsV1"}})
	var d fields.Defect
	if !errors.As(err, &d) || d.Problem != fields.NoAPIVersion || d.Index != 0 {
		t.Errorf("got %v", err)
	}
}

func TestEntryJSON(t *testing.T) {
	const text = `[{"manager":"eno","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:spec":{"f:a":{},"f:b":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"v:\"x\"":{}}}}},` +
		`{"manager":"kubelet","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"subresource":"status"}]`
	var es fields.Entries
	if err := json.Unmarshal([]byte(text), &es); err != nil {
		t.Fatal(err)
	}
	diff(t, "an entry is written as it was read", text, mustJSON(t, es))

	for name, bad := range map[string]string{
		"defective": `[{"manager":"eno","operation":"Apply","fieldsType":"FieldsV1"}]`,
		"no object": `[3]`,
		"no text":   `[{"manager":3}]`,
	} {
		var d fields.Defect
		if err := json.Unmarshal([]byte(bad), &es); !errors.As(err, &d) {
			t.Errorf("reading from JSON is strict: %s: %v", name, err)
		}
	}
}

func TestParseFieldsErrors(t *testing.T) {
	for _, bad := range []string{"", "{", "null", "[]", `{"f:a":3}`, `{"a":{}}`, `{"i:x":{}}`} {
		if got, err := fields.ParseFields([]byte(bad)); err == nil {
			t.Errorf("%q was read as %s", bad, got)
		}
	}
}

func TestIdentity(t *testing.T) {
	at := func(manager string, o fields.Operation, subresource, version string) fields.Identity {
		return fields.Entry{Manager: manager, Operation: o, Subresource: subresource, APIVersion: version, Time: "t"}.Identity()
	}
	cases := map[string]struct {
		reason string
		a, b   fields.Identity
		same   bool
	}{
		"ApplyInTwoVersions":  {reason: "a manager applies in one version at a time", a: at("m", fields.Apply, "", "v1"), b: at("m", fields.Apply, "", "v2"), same: true},
		"UpdateInTwoVersions": {reason: "updates are kept by version", a: at("m", fields.Update, "", "v1"), b: at("m", fields.Update, "", "v2")},
		"TwoOperations":       {reason: "an apply and an update by one manager are two identities", a: at("m", fields.Apply, "", "v1"), b: at("m", fields.Update, "", "v1")},
		"Subresource":         {reason: "a subresource makes another", a: at("m", fields.Apply, "", "v1"), b: at("m", fields.Apply, "status", "v1")},
		"TwoNames":            {reason: "names count", a: at("m", fields.Apply, "", "v1"), b: at("n", fields.Apply, "", "v1")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if (tc.a == tc.b) != tc.same || (tc.a.Compare(tc.b) == 0) != tc.same {
				t.Errorf("%s: %s and %s", tc.reason, tc.a, tc.b)
			}
		})
	}
	diff(t, "identities are for people too", []string{"m (Apply)", "m (Update v2 of /scale)", "nobody"},
		texts([]fields.Identity{at("m", fields.Apply, "", "v1"), at("m", fields.Update, "scale", "v2"), {}}))
}

func TestMerge(t *testing.T) {
	v2 := applied(t, "eno", `{"f:c":{}}`)
	v2.APIVersion = "v2"
	later := updated(t, "zoe", `{"f:a":{}}`)
	later.Time = "2026-01-02T00:00:00Z"
	latest := updated(t, "abe", `{"f:a":{}}`)
	latest.Time = "2026-01-03T00:00:00Z"
	cases := map[string]struct {
		reason  string
		entries fields.Entries
		want    []string
		fields  map[string][]string
	}{
		"TwoOfOne": {
			reason:  "the server would keep the last and lose the other",
			entries: fields.Entries{applied(t, "eno", `{"f:a":{}}`), applied(t, "eno", `{"f:b":{}}`)},
			want:    []string{"eno (Apply)"},
			fields:  map[string][]string{"eno (Apply)": {"a", "b"}},
		},
		"AppliedInTwoVersions": {
			reason:  "paths of two versions are not mixed",
			entries: fields.Entries{applied(t, "eno", `{"f:a":{}}`), v2},
			want:    []string{"eno (Apply)"},
			fields:  map[string][]string{"eno (Apply) in v2": {"c"}},
		},
		"Empty": {
			reason:  "entries without fields are dropped, as the server does",
			entries: fields.Entries{applied(t, "eno", `{}`), updated(t, "husk", `{".":{}}`), {Manager: "nil", Operation: fields.Apply, APIVersion: "v1"}},
			want:    nil,
			fields:  map[string][]string{},
		},
		"Order": {
			reason:  "Apply comes first, then the oldest; an entry without a time is the oldest",
			entries: fields.Entries{latest, later, updated(t, "nil", `{"f:a":{}}`), applied(t, "eno", `{"f:a":{}}`)},
			want:    []string{"eno (Apply)", "nil (Update v1)", "zoe (Update v1)", "abe (Update v1)"},
			fields:  map[string][]string{"eno (Apply)": {"a"}, "nil (Update v1)": {"a"}, "zoe (Update v1)": {"a"}, "abe (Update v1)": {"a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.entries.Merge()
			var ids []string
			for _, e := range got {
				ids = append(ids, e.Identity().String())
			}
			diff(t, tc.reason, tc.want, ids)
			diff(t, tc.reason, tc.fields, show(got))
		})
	}
}

func TestCheck(t *testing.T) {
	good := applied(t, "eno", `{"f:a":{}}`)
	cases := map[string]struct {
		reason  string
		entries fields.Entries
		want    string
	}{
		"Good":         {reason: "this can be written", entries: fields.Entries{good, updated(t, "eno", `{"f:a":{}}`)}},
		"Nothing":      {reason: "nothing is wrong with nothing"},
		"NoAPIVersion": {reason: "the server would ignore the list", entries: fields.Entries{{Manager: "m", Operation: fields.Apply}}, want: `cannot use managedFields[0] of manager "m": it has no apiVersion`},
		"BadOperation": {reason: "the server would ignore the list", entries: fields.Entries{{Manager: "m", APIVersion: "v1"}}, want: `cannot use managedFields[0] of manager "m": its operation is "", which is neither Apply nor Update`},
		"Duplicate":    {reason: "the server would lose the first", entries: fields.Entries{good, good}, want: `cannot use managedFields[1] of manager "eno": an entry before it is of the same eno (Apply)`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.entries.Check(); err != nil {
				got = err.Error()
			}
			diff(t, tc.reason, tc.want, got)
		})
	}
}

func TestEqual(t *testing.T) {
	timed := applied(t, "eno", `{"f:a":{}}`)
	timed.Time = "2026-01-01T00:00:00Z"
	v2 := applied(t, "eno", `{"f:a":{}}`)
	v2.APIVersion = "v2"
	eno, legacy := applied(t, "eno", `{"f:a":{}}`), updated(t, "legacy", `{"f:b":{}}`)
	cases := map[string]struct {
		reason string
		a, b   fields.Entries
		want   bool
	}{
		"Time":       {reason: "times mean nothing", a: fields.Entries{timed}, b: fields.Entries{eno}, want: true},
		"Order":      {reason: "order means nothing", a: fields.Entries{eno, legacy}, b: fields.Entries{legacy, eno}, want: true},
		"Husk":       {reason: "an entry without fields means nothing", a: fields.Entries{eno, updated(t, "x", `{}`)}, b: fields.Entries{eno}, want: true},
		"InTwoParts": {reason: "two entries of one identity mean what one of both means", a: fields.Entries{eno, applied(t, "eno", `{"f:b":{}}`)}, b: fields.Entries{applied(t, "eno", `{"f:a":{},"f:b":{}}`)}, want: true},
		"None":       {reason: "an empty list equals an empty list", a: nil, b: fields.Entries{}, want: true},
		"Version":    {reason: "the same path in another version is another field", a: fields.Entries{eno}, b: fields.Entries{v2}},
		"Operation":  {reason: "to hold is not to apply", a: fields.Entries{eno}, b: fields.Entries{updated(t, "eno", `{"f:a":{}}`)}},
		"More":       {reason: "one field more", a: fields.Entries{eno}, b: fields.Entries{applied(t, "eno", `{"f:a":{},"f:b":{}}`)}},
		"Parent":     {reason: "a list is not what is in it", a: fields.Entries{applied(t, "eno", `{"f:a":{"f:b":{}}}`)}, b: fields.Entries{applied(t, "eno", `{"f:a":{".":{},"f:b":{}}}`)}},
		"Manager":    {reason: "one manager more", a: fields.Entries{eno}, b: fields.Entries{eno, legacy}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if fields.Equal(tc.a, tc.b) != tc.want || fields.Equal(tc.b, tc.a) != tc.want {
				t.Errorf("%s: want %t", tc.reason, tc.want)
			}
		})
	}
}
