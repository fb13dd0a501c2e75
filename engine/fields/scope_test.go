package fields_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/arbor-control/arbor/engine/fields"
)

type fieldPath = fieldpath.Path

func path(parts ...any) fieldPath { return fieldpath.MakePathOrDie(parts...) }

func keys(nameValues ...any) *value.FieldList { return fieldpath.KeyByFields(nameValues...) }

func TestScopeMatches(t *testing.T) {
	web := path("spec", "containers", keys("name", "web"), "image")
	port := path("spec", "ports", keys("port", 80.0, "protocol", "TCP"))
	arg := path("spec", "args", value.NewValueInterface("-v"))
	cases := map[string]struct {
		reason string
		scope  string
		path   fieldpath.Path
		want   bool
	}{
		"Itself":             {reason: "a scope has what it names", scope: "spec.containers", path: web[:2], want: true},
		"Below":              {reason: "and all that is below", scope: "spec.containers", path: web, want: true},
		"Above":              {reason: "but not what is above", scope: "spec.containers", path: web[:1]},
		"NameIsNoPrefix":     {reason: "names match as a whole", scope: "spec.container", path: web},
		"Item":               {reason: "an item by its key", scope: "spec.containers[name=web]", path: web, want: true},
		"Sibling":            {reason: "never its sibling", scope: "spec.containers[name=web]", path: path("spec", "containers", keys("name", "web2"))},
		"Expression":         {reason: "an expression matches anywhere in the text", scope: "spec.containers[name=~e]", path: web, want: true},
		"Anchored":           {reason: "unless it is quoted", scope: "spec.containers[name=~^e]", path: web},
		"QuotedExpression":   {reason: "with brackets it is quoted", scope: `spec.containers[name=~"^[vw]eb$"]`, path: web, want: true},
		"FieldOfItem":        {reason: "a field of an item", scope: "spec.containers[name=web].image", path: web, want: true},
		"OtherFieldOfItem":   {reason: "and no other", scope: "spec.containers[name=web].command", path: web},
		"AnyItem":            {reason: "a star is any item", scope: "spec.containers[*].image", path: web, want: true},
		"AnyField":           {reason: "or any field", scope: "spec.*", path: web, want: true},
		"AnyIsBelow":         {reason: "and not what it is in", scope: "spec.*", path: web[:1]},
		"Everything":         {reason: "one star is all there is", scope: "*", path: web, want: true},
		"AllKeys":            {reason: "all keys, in any order", scope: "spec.ports[protocol=TCP,port=80]", path: port, want: true},
		"SomeKeys":           {reason: "keys that are left out match anything", scope: "spec.ports[port=80]", path: port, want: true},
		"WrongKey":           {reason: "each key that is there must match", scope: "spec.ports[port=80,protocol=UDP]", path: port},
		"NoSuchKey":          {reason: "a key that the item does not have matches nothing", scope: "spec.ports[name=80]", path: port},
		"NumberInQuotes":     {reason: "quotes are for strings", scope: `spec.ports[port="80"]`, path: port},
		"StringWithout":      {reason: "a string needs no quotes", scope: `spec.ports[name=80]`, path: path("spec", "ports", keys("name", "80")), want: true},
		"Float":              {reason: "numbers match as they are written", scope: `spec.ports[port=1.5]`, path: path("spec", "ports", keys("port", 1.5)), want: true},
		"Truth":              {reason: "and so do truth values", scope: `spec.ports[on=true]`, path: path("spec", "ports", keys("on", true)), want: true},
		"SetValue":           {reason: "a value of a set", scope: `spec.args[="-v"]`, path: arg, want: true},
		"SetValueUnquoted":   {reason: "without quotes too", scope: `spec.args[=-v]`, path: arg, want: true},
		"SetValueExpression": {reason: "or by expression", scope: `spec.args[=~^-]`, path: arg, want: true},
		"OtherSetValue":      {reason: "another value", scope: `spec.args[=-w]`, path: arg},
		"KeyIsNoValue":       {reason: "an item with keys is not a value", scope: `spec.containers[=web]`, path: web},
		"NameIsNoItem":       {reason: "an item is not a field", scope: `spec.containers.web`, path: web},
		"DottedName":         {reason: "quotes keep dots together", scope: `metadata.annotations."a.b/c"`, path: path("metadata", "annotations", "a.b/c"), want: true},
		"DottedInBrackets":   {reason: "in either way", scope: `metadata.annotations["a.b/c"]`, path: path("metadata", "annotations", "a.b/c"), want: true},
		"LeadingDot":         {reason: "a dot in front is what other tools write", scope: ".spec.replicas", path: path("spec", "replicas"), want: true},
		"Star":               {reason: "a name can be a star, in quotes", scope: `spec["*"]`, path: path("spec", "replicas")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := fields.ParseScope(tc.scope)
			if err != nil {
				t.Fatal(err)
			}
			if s.Matches(tc.path) != tc.want {
				t.Errorf("%s: %s matches %s: want %t", tc.reason, tc.scope, tc.path, tc.want)
			}
			again, err := fields.ParseScope(s.String())
			if err != nil || !again.Equal(s) {
				t.Errorf("%s is written %s, which is read as %s, error %v", tc.scope, s, again, err)
			}
		})
	}
}

func TestScopeString(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Plain":       {reason: "as it was", text: "spec.template.spec.initContainers[name=base-os-bash]", want: "spec.template.spec.initContainers[name=base-os-bash]"},
		"LeadingDot":  {reason: "dots in front go", text: ".spec", want: "spec"},
		"Quotes":      {reason: "one way for names in quotes", text: `metadata.annotations."a.b/c"."x"`, want: `metadata.annotations["a.b/c"].x`},
		"FirstQuoted": {reason: "also at the beginning", text: `"a b".c`, want: `["a b"].c`},
		"Value":       {reason: "quotes of a value mean something", text: `a[b="c"]`, want: `a[b="c"]`},
		"Expression":  {reason: "those of an expression do not", text: `a[b=~"^c"]`, want: `a[b=~^c]`},
		"Stars":       {reason: "stars stay what they are", text: `*.*[*]`, want: `*.*[*]`},
		"Escapes":     {reason: "characters that cannot be printed are escaped", text: `["a\u0000\xff"]`, want: `["a\x00\xff"]`},
		"Unicode":     {reason: "letters of all scripts are plain", text: `größe.大[名=前]`, want: `größe.大[名=前]`},
		"QuotedKey":   {reason: "keys can be quoted", text: `a["b.c"=d]`, want: `a["b.c"=d]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := fields.ParseScope(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, tc.reason, tc.want, s.String())
		})
	}
}

func TestScopeErrors(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Empty":      {reason: "a scope is something", text: "", want: `cannot read scope "" at position 1: the text ends where a field is expected: a plain name, a quoted one or "*"`},
		"TwoDots":    {reason: "a dot has a field behind it", text: "spec..x", want: `cannot read scope "spec..x" at position 6: there is "." where a field is expected: a plain name, a quoted one or "*"`},
		"DotAtEnd":   {reason: "also at the end", text: "spec.", want: `cannot read scope "spec." at position 6: the text ends where a field is expected: a plain name, a quoted one or "*"`},
		"Slash":      {reason: "without quotes the dots would mean something else", text: "metadata.annotations.a.b/c", want: `cannot read scope "metadata.annotations.a.b/c" at position 25: there is "/" where a plain field is expected; names with "/" or "." in them are written ["like.this/one"]`},
		"Space":      {reason: "spaces are quoted", text: "spec x", want: `cannot read scope "spec x" at position 5: there is " " where a "." and a field, a "[" or the end is expected`},
		"Position":   {reason: "items have no position", text: "spec.containers[0]", want: `cannot read scope "spec.containers[0]" at position 17: there is "0" where a key is expected: items are known by what is in them, like [name=web], and not by their position`},
		"NoKey":      {reason: "brackets have something in them", text: "a[]", want: `cannot read scope "a[]" at position 3: there is "]" where a key, like name=web, "*", a quoted name, or "=" and a value is expected`},
		"NoEquals":   {reason: "a key has a value", text: "a[b]", want: `cannot read scope "a[b]" at position 4: there is "]" where a "=" is expected`},
		"NoValue":    {reason: "which may be empty only in quotes", text: "a[b=]", want: `cannot read scope "a[b=]" at position 5: there is "]" where a value is expected, quoted if it is empty or has one of [],="`},
		"NoEnd":      {reason: "brackets are closed", text: "a[b=c", want: `cannot read scope "a[b=c" at position 6: the text ends where a "]" is expected`},
		"NoEndQuote": {reason: "and quotes are", text: `a["b`, want: `cannot read scope "a[\"b" at position 3: there is "\"" where a quoted string is expected that ends with a quote and has Go's escapes`},
		"ValueQuote": {reason: "those of a value too", text: `a[b="c]`, want: `cannot read scope "a[b=\"c]" at position 5: there is "\"" where a quoted string is expected that ends with a quote and has Go's escapes`},
		"Expression": {reason: "an expression must be one", text: `a[b=~(]`, want: "cannot read scope \"a[b=~(]\" at position 6: there is \"(\" where a regular expression is expected: error parsing regexp: missing closing ): `(`"},
		"Behind":     {reason: "a field stands behind a dot", text: `a[*]b`, want: `cannot read scope "a[*]b" at position 5: there is "b" where a "." and a field, a "[" or the end is expected`},
		"TwoStars":   {reason: "a star stands alone", text: `a*`, want: `cannot read scope "a*" at position 2: there is "*" where a "." and a field, a "[" or the end is expected`},
		"NoUTF8":     {reason: "bytes that are not text are shown", text: "a\xff", want: `cannot read scope "a\xff" at position 2: there is "\xff" where a "." and a field, a "[" or the end is expected`},
		"AfterComma": {reason: "a comma has a key behind it", text: "a[b=c,]", want: `cannot read scope "a[b=c,]" at position 7: there is "]" where a key, like name=web, "*", a quoted name, or "=" and a value is expected`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := fields.ParseScope(tc.text)
			if e := new(fields.SyntaxError); !errors.As(err, &e) {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			diff(t, tc.reason, tc.want, err.Error())
		})
	}
}

func TestParseScopes(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"One":     {reason: "one is enough", text: "spec.args", want: "spec.args"},
		"Several": {reason: "lines and semicolons separate", text: "spec.a; spec.b\n  spec.c\n", want: "spec.a | spec.b | spec.c"},
		"Comma":   {reason: "a comma is part of a scope", text: "a[b=1,c=2];d", want: "a[b=1,c=2] | d"},
		"Quoted":  {reason: "quotes keep a separator", text: `data["a;b"]; data["c\";\n"]`, want: `data.a;b | data["c\";\n"]`},
		"Blank":   {reason: "blank ones are skipped", text: " ;\n;", want: ""},
		"Bad":     {reason: "one that cannot be read is an error", text: "spec; spec[", want: "error"},
		"Denied":  {reason: "so is one that is never moved", text: "spec; status", want: "error"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all, err := fields.ParseScopes(tc.text)
			var got []string
			for _, s := range all {
				got = append(got, s.String())
			}
			if err != nil {
				got = append(got, "error")
			}
			diff(t, tc.reason, tc.want, strings.Join(got, " | "))
		})
	}
}

func TestDenied(t *testing.T) {
	cases := map[string]struct {
		reason, scope string
		want          string
	}{
		"Status":          {reason: "status is for those who observe", scope: "status", want: "cannot move the ownership of status: status is never moved; use another scope"},
		"InStatus":        {reason: "and all of it", scope: "status.conditions[type=Ready]", want: "cannot move the ownership of status.conditions[type=Ready]: status is never moved; use another scope"},
		"Finalizers":      {reason: "removing a finalizer lets the server delete the object", scope: `metadata.finalizers[="a/b"]`, want: `cannot move the ownership of metadata.finalizers[="a/b"]: metadata.finalizers is never moved; use another scope`},
		"OwnerReferences": {reason: "so does an owner", scope: `metadata["ownerReferences"]`, want: `cannot move the ownership of metadata.ownerReferences: metadata.ownerReferences is never moved; use another scope`},
		"Larger":          {reason: "a larger scope is valid; such fields are skipped", scope: "metadata"},
		"Everything":      {reason: "and so is everything", scope: "*"},
		"SpecStatus":      {reason: "only the status at the top is one", scope: "spec.status"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := fields.MustParseScope(tc.scope).Check(); err != nil {
				got = err.Error()
			}
			diff(t, tc.reason, tc.want, got)
		})
	}
}

func TestScopeInJSON(t *testing.T) {
	type holder struct {
		Scope fields.Scope `json:"scope"`
	}
	in := holder{Scope: fields.MustParseScope(`a["b.c"]`)}
	data := mustJSON(t, in)
	var out holder
	if err := json.Unmarshal([]byte(data), &out); err != nil || !out.Scope.Equal(in.Scope) {
		t.Errorf("%s is read as %s, error %v", data, out.Scope, err)
	}
	if err := json.Unmarshal([]byte(`{"scope":""}`), &out); err != nil || !out.Scope.Equal(fields.Scope{}) {
		t.Errorf("an empty text is the whole object: %s, error %v", out.Scope, err)
	}
	if err := json.Unmarshal([]byte(`{"scope":"["}`), &out); err == nil {
		t.Error("a bad scope was read")
	}
}

func TestMustParseScope(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a bad scope is a mistake of the program")
		}
	}()
	fields.MustParseScope("")
}

func TestFormatPath(t *testing.T) {
	index := 3
	cases := map[string]struct {
		reason string
		path   fieldpath.Path
		want   string
	}{
		"Plain":      {reason: "as in a manifest", path: path("spec", "containers", keys("name", "web"), "image"), want: "spec.containers[name=web].image"},
		"Dots":       {reason: "names with dots", path: path("metadata", "annotations", "a.b/c"), want: `metadata.annotations["a.b/c"]`},
		"Numbers":    {reason: "numbers without quotes", path: path("ports", keys("port", 80, "protocol", "TCP")), want: "ports[port=80,protocol=TCP]"},
		"NumberText": {reason: "text that looks like a number in quotes", path: path("ports", keys("name", "80")), want: `ports[name="80"]`},
		"TruthText":  {reason: "and text that looks like a truth value", path: path("ports", keys("name", "true")), want: `ports[name="true"]`},
		"Truth":      {reason: "truth values without", path: path("ports", keys("on", true)), want: `ports[on=true]`},
		"Value":      {reason: "values of sets", path: path("args", value.NewValueInterface("-v=3")), want: `args[="-v=3"]`},
		"Tilde":      {reason: "a text that looks like an expression", path: path("args", value.NewValueInterface("~x")), want: `args[="~x"]`},
		"EmptyText":  {reason: "empty text", path: path("args", value.NewValueInterface("")), want: `args[=""]`},
		"Null":       {reason: "null", path: path("args", value.NewValueInterface(nil)), want: `args[=null]`},
		"Map":        {reason: "a type that is not a key in Kubernetes", path: path("args", value.NewValueInterface(map[string]any{"a": 1})), want: `args[="{\"a\":1}"]`},
		"Index":      {reason: "positions can be written, if not read", path: fieldpath.Path{{Index: &index}}, want: "[3]"},
		"Nothing":    {reason: "the object itself", path: nil, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			diff(t, tc.reason, tc.want, fields.FormatPath(tc.path))
		})
	}
}
