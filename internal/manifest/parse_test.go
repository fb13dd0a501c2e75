package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summary is a File in short: "line: name" per document, "line! error" per
// error, "line? reason" per document that was ignored.
func summary(f File) []string {
	var out []string

	for _, d := range f.Documents {
		name, _ := d.Text("metadata.name")
		out = append(out, fmt.Sprintf("%d: %v %s", d.Line(""), d.Object["kind"], name))
	}

	for _, e := range f.Errors {
		out = append(out, fmt.Sprintf("%d! %s", e.Line, withFix(e)))
	}

	for _, e := range f.Ignored {
		out = append(out, fmt.Sprintf("%d? %s", e.Line, withFix(e)))
	}

	return out
}

func withFix(e *Error) string {
	if e.Fix == "" {
		return e.Error()
	}

	return e.Error() + " (" + e.Fix + ")"
}

func TestParse(t *testing.T) {
	type want []string

	tests := map[string]struct {
		reason string
		file   string
		text   string
		want   want
	}{
		"Nothing":         {reason: "an empty file is fine", text: "", want: nil},
		"CommentsOnly":    {reason: "so is one without content", text: "# a\n---\n\n# b\n---\n~\n", want: nil},
		"NotAnObject":     {reason: "lists and scalars are no manifests, and not lost without a trace", text: "- a\n---\nb\n", want: want{"1? the document is not an object", "3? the document is not an object"}},
		"ManyDocuments":   {reason: "lines count from the top of the file", text: "---\nkind: A\n---\n# x\n\nkind: B\n--- # c\nkind: C", want: want{"2: A ", "6: B ", "8: C "}},
		"CarriageReturns": {reason: "files from Windows are read alike", text: "kind: A\r\n---\r\nkind: B\r\nmetadata:\r\n  name: x\r\n", want: want{"1: A ", "3: B x"}},
		"ByteOrderMark":   {reason: "a mark at the start is not text", text: "\ufeff---\nkind: A\n", want: want{"2: A "}},
		"BadDocument": {
			reason: "one bad document does not hide the others",
			text:   "kind: A\n---\nkind: B\n  x: y\n---\nkind: C\n",
			want:   want{"1: A ", "6: C ", "4! invalid YAML: mapping values are not allowed in this context"},
		},
		"BadIndent": {
			reason: "the line is the one to look at",
			text:   "kind: A\nspec:\n    a: 1\n  b: 2\n",
			want:   want{"3! invalid YAML: did not find expected key"},
		},
		"BadFirstLine": {reason: "an error without a line is on the first", text: "}", want: want{"1! invalid YAML: did not find expected node content"}},
		"BadSeparator": {
			reason: "kubectl takes nothing but comments after the dashes",
			text:   "kind: A\n--- kind: B\nkind: C\n",
			want:   want{"1: A ", "3: C ", `2! invalid YAML: "kind: B" after the document separator ---`},
		},
		"Template": {
			reason: "templates are not manifests yet",
			text:   "kind: A\nmetadata:\n  name: {{ .Release.Name }}-x\n",
			want:   want{"2! invalid YAML: did not find expected key (this looks like a template: render it first)"},
		},
		"UTF16": {
			reason: "what a shell of Windows writes gets a clear answer",
			text:   "\xff\xfek\x00", want: want{"1! the text is UTF-16, which Kubernetes tools cannot read (save it as UTF-8)"},
		},
		"BadUTF8": {reason: "bytes that are no text are an error", text: "kind: \xff\n", want: want{"1! invalid YAML: invalid leading UTF-8 octet"}},
		"List": {
			reason: "items are documents on their own lines",
			text:   "kind: List\nitems:\n- kind: A\n  metadata: {name: x}\n- kind: List\n  items: [{kind: B}]\n- 7\n",
			want:   want{"3: A x", "6: B "},
		},
		"TypedList": {
			reason: "items of a typed list take its kind",
			text:   "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: x}}]\n", want: want{"3: Pod x"},
		},
		"AliasedItems": {
			reason: "an aliased item is on the line of its anchor",
			text:   "a: &a\n- kind: A\nkind: List\nitems: *a\n", want: want{"2: A "},
		},
		"ItemsWithoutList": {reason: "other kinds may have items", text: "kind: Menu\nitems: []\n", want: want{"1: Menu "}},
		"JSON":             {reason: "JSON has lines too", file: "a.json", text: "{\n \"kind\": \"A\",\n \"metadata\": {\n  \"name\": \"x\"}}", want: want{"1: A x"}},
		"JSONStream":       {reason: "objects may follow each other", text: "{\"kind\": \"A\"}\n{\"kind\": \"B\"}\n---\n{\"kind\": \"C\"}", want: want{"1: A ", "2: B ", "4: C "}},
		"FlowYAML":         {reason: "a brace does not make it JSON", text: "{kind: A, metadata: {name: x}}", want: want{"1: A x"}},
		"BadJSON": {
			reason: "a .json file gets the words of JSON",
			file:   "a.json", text: "{\n\"kind\": \"A\",\n\"x\": [1,}\n", want: want{"3! invalid JSON: invalid character '}' looking for beginning of value"},
		},
		"CutJSON": {
			reason: "an end in the middle is an error",
			file:   "a.json", text: "{\"kind\": \"A\"}\n{\"kind\": \"B\"}\n{\"x\": ", want: want{"1: A ", "2: B ", "3! invalid JSON: unexpected EOF"},
		},
		"BadTag":        {reason: "values must be what their tag says", text: "kind: A\na:\n  b: !!int x\n", want: want{`3! "x" is not a value of type !!int`}},
		"ComplexKey":    {reason: "JSON has only text for keys", text: "kind: A\n? [a]\n: b\n", want: want{"2! a key must be a scalar"}},
		"NullKey":       {reason: "null is not text", text: "kind: A\n~: b\n", want: want{"2! <nil> cannot be a key"}},
		"BadKey":        {reason: "keys have tags too", text: "kind: A\n!!int x: b\n", want: want{`2! "x" is not a value of type !!int`}},
		"UnknownAnchor": {reason: "an alias needs an anchor", text: "a: *x\n", want: want{"1! invalid YAML: unknown anchor 'x' referenced"}},
		"SelfAnchor":    {reason: "a value cannot contain itself", text: "a: &x\n  b: *x\n", want: want{"2! an anchor contains itself"}},
		"SelfMerge":     {reason: "nor merge itself", text: "a: &x\n  <<: *x\n", want: want{"2! an anchor contains itself"}},
		"MergeScalar":   {reason: "only mappings merge", text: "<<: 1\n", want: want{"1! a merge key needs a mapping"}},
		"MergeAlias":    {reason: "aliases of mappings too", text: "a: &x 1\nb: {<<: *x}\n", want: want{"2! a merge key needs a mapping"}},
		"MergeList":     {reason: "and lists of mappings", text: "a: {<<: [{b: 1}, 2]}\n", want: want{"1! a merge key needs mappings"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file := tc.file
			if file == "" {
				file = "a.yaml"
			}

			if diff := cmp.Diff([]string(tc.want), summary(Parse(file, []byte(tc.text)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLine(t *testing.T) {
	const text = `# a comment
kind: A
base: &base
  queue: q
  deep: {er: 1}
metadata:
  labels:
    app.example.com/name: x
    "quoted": y
spec:
  <<: [*base, {extra: 2}]
  subGroups:
  - name: a
  -
    name: b
    parent: a
  - &c
    name: c
  - *c
  twice: 1
  twice: 2
`
	tests := map[string]struct {
		reason string
		field  string
		want   int
	}{
		"Root":            {reason: "the object itself is on its first line", field: "", want: 2},
		"Key":             {reason: "a field is on the line of its key", field: "spec", want: 10},
		"Item":            {reason: "an item is on the line of its value", field: "spec.subGroups[0]", want: 13},
		"InItem":          {reason: "paths go through lists", field: "spec.subGroups[1].parent", want: 16},
		"Absent":          {reason: "an absent field is on the line of what lacks it", field: "spec.subGroups[0].parent", want: 13},
		"AbsentItem":      {reason: "so is an absent item", field: "spec.subGroups[9].parent", want: 12},
		"NotAnIndex":      {reason: "and a path that makes no sense", field: "spec.subGroups.name", want: 12},
		"BelowScalar":     {reason: "or goes on below a scalar", field: "kind.x.y", want: 2},
		"DotsInKey":       {reason: "keys may contain dots", field: "metadata.labels.app.example.com/name", want: 8},
		"Brackets":        {reason: "keys may stand in brackets", field: "metadata.labels[app.example.com/name]", want: 8},
		"Quoted":          {reason: "quotes do not count", field: "metadata.labels[quoted]", want: 9},
		"BracketsUnknown": {reason: "unknown keys in brackets too", field: "metadata.labels[nope]", want: 7},
		"Merged":          {reason: "a merged field is where it is written", field: "spec.queue", want: 4},
		"BelowMerged":     {reason: "and what is below it", field: "spec.deep.er", want: 5},
		"MergedInline":    {reason: "also in place", field: "spec.extra", want: 11},
		"Aliased":         {reason: "an alias leads to its anchor", field: "spec.subGroups[3].name", want: 18},
		"Duplicate":       {reason: "the last of two counts", field: "spec.twice", want: 21},
		"Prefix":          {reason: "a name that only begins alike is another", field: "spe", want: 2},
	}

	d := Parse("a.yaml", []byte(text)).Documents[0]

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := d.Line(tc.field); got != tc.want {
				t.Errorf("%s: Line(%q) = %d, want %d", tc.reason, tc.field, got, tc.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	d := Parse("a.yaml", []byte("a: 'yes'\nb: 0x10\nc: [1]\n")).Documents[0]

	for field, want := range map[string]string{"a": "yes", "b": "0x10", "c[0]": "1"} {
		if got, ok := d.Text(field); !ok || got != want {
			t.Errorf("Text(%q) = %q, %t, want %q as it is written", field, got, ok, want)
		}
	}

	for _, field := range []string{"c", "d", "a.b"} {
		if got, ok := d.Text(field); ok {
			t.Errorf("Text(%q) = %q, want none: it is no scalar", field, got)
		}
	}
}

func TestDuplicates(t *testing.T) {
	const text = `---
kind: List
items:
- kind: A
- kind: B
  spec:
    x: &x {a: 1, a: 2}
    y: *x
    list:
    - b: 1
      "b": 2
    "": 1
    "": 2
    <<: {c: 1, c: 2}
  spec: {}
`
	want := []Duplicate{
		{Field: "spec.x.a", First: 7, Line: 7},
		{Field: "spec.list[0].b", First: 10, Line: 11},
		{Field: "spec.", First: 12, Line: 13},
		{Field: "spec.c", First: 14, Line: 14},
		{Field: "spec", First: 6, Line: 15},
	}

	f := Parse("a.yaml", []byte(text))
	if diff := cmp.Diff(want, f.Documents[1].Duplicates); diff != "" {
		t.Errorf("every key set twice is reported once, where it is written (-want +got):\n%s", diff)
	}

	if len(f.Documents[0].Duplicates) != 0 {
		t.Errorf("an item has the duplicates of its neighbour: %v", f.Documents[0].Duplicates)
	}
}

// TestBombs feeds inputs that grow out of all proportion.
func TestBombs(t *testing.T) {
	laughs := "a0: &a0 [x, x]\n"
	merges := "a0: &a0 {}\n"

	for i := 1; i < 60; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
		merges += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i-1, i-1)
	}

	// Each document stays below the bound, all together do not.
	many := strings.Repeat("---\na: &a ["+strings.Repeat("1,", 1000)+"]\nb: ["+strings.Repeat("*a,", 100)+"]\n", 10)

	tests := map[string]struct {
		reason string
		text   string
		want   error
	}{
		"Laughs":    {reason: "aliases of aliases are bounded", text: laughs, want: errAliases},
		"Merges":    {reason: "so are merges of merges, which leave nothing behind", text: merges, want: errAliases},
		"Documents": {reason: "the bound is one for the whole input", text: many, want: errAliases},
		"Flow":      {reason: "nesting is bounded", text: strings.Repeat("[", 5000) + strings.Repeat("]", 5000), want: errDepth},
		"Block":     {reason: "in block style too", text: strings.Repeat("- ", 5000) + "x", want: errDepth},
		"JSON":      {reason: "and in JSON", text: strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000), want: errDepth},
		"MergeDeep": {reason: "and in merges", text: strings.Repeat("{<<: ", 5000) + "{}" + strings.Repeat("}", 5000), want: errDepth},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := Parse("a.yaml", []byte(tc.text))
			if len(f.Errors) == 0 || f.Errors[0].Error() != tc.want.Error() {
				t.Fatalf("%s: got %v, want %v", tc.reason, f.Errors, tc.want)
			}
		})
	}
}

// TestLookupInManyMerges searches a path that is in none of many merged
// mappings.
func TestLookupInManyMerges(t *testing.T) {
	text := "a0: &a0 {x: 1}\n"
	for i := 1; i < 14; i++ {
		text += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i-1, i-1)
	}

	d := Parse("a.yaml", []byte(text)).Documents[0]
	for range 1000 {
		if got := d.Line("a13.nope"); got != 14 {
			t.Fatalf("got line %d, want 14", got)
		}
	}
}

// TestLarge reads a document that Kubernetes could not store.
func TestLarge(t *testing.T) {
	var b strings.Builder

	b.WriteString("kind: A\nspec:\n  subGroups:\n")

	const n = 4_000
	for i := range n {
		fmt.Fprintf(&b, "  - name: %s-%d\n", strings.Repeat("long-", 160), i)
	}

	f := Parse("a.yaml", []byte(b.String()))
	if len(f.Errors) > 0 {
		t.Fatal(f.Errors)
	}

	if got := f.Documents[0].Line("spec.subGroups[3999].name"); got != n+3 {
		t.Errorf("got line %d, want %d", got, n+3)
	}
}
