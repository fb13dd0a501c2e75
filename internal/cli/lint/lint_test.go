package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/arbor-control/arbor/internal/cli/clitest"
	"github.com/arbor-control/arbor/internal/cli/command"
	"github.com/arbor-control/arbor/internal/linter"
	"github.com/arbor-control/arbor/internal/manifest"
)

func TestLint(t *testing.T) {
	tests := map[string]struct {
		reason string
		files  map[string]string
		stdin  string
		args   []string
		want   []string
		sum    string
		code   int
	}{
		"Fine": {
			reason: "a good file leaves only the summary",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "spec: {subGroups: [{name: x}]}"},
			args:   []string{"-f", "a.yaml"},
			sum:    "1 file, 1 document, 1 checked: 0 errors, 0 warnings",
		},
		"Others": {
			reason: "documents of other kinds are counted and left alone",
			files: map[string]string{
				"d/a.yaml": "apiVersion: v1\nkind: ConfigMap\na: 1\na: 2\n---\nkind: Deployment\n---\nx: y\n---\n- z\n",
				"d/b.yaml": "apiVersion: scheduling.run.ai/v2\nkind: Queue\n---\napiVersion: other.io/v1\nkind: PodGroup\n",
			},
			args: []string{"d"},
			sum:  "2 files, 5 documents, 0 checked: 0 errors, 0 warnings",
		},
		"Rule": {
			reason: "the words are those of admission, with the line and the fix",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "spec:\n  subGroups:\n  - name: Master\n  - name: w\n    parent: Nope\n"},
			args:   []string{"-f", "a.yaml"},
			want: []string{
				`a.yaml:6: error: PodGroup ns/a: spec.subGroups[0].name: subgroup name "Master" must be lowercase (rename it to "master")`,
				`a.yaml:8: error: PodGroup ns/a: spec.subGroups[1].parent: parent of subgroup "w": subgroup name "Nope" must be lowercase (write "nope")`,
				`a.yaml:8: error: PodGroup ns/a: spec.subGroups[1].parent: parent Nope of w was not found (add a subgroup named "nope" or remove the parent)`,
			},
			sum: "1 file, 1 document, 1 checked: 3 errors, 0 warnings", code: 1,
		},
		"Schema": {
			reason: "the schema names field and value, and does not repeat what the rules say",
			files: map[string]string{"a.yaml": clitest.PodGroupHead + `spec:
  minMember: two
  minSubGroup: -1
  minmember: 1
  preemptionDelay: 5x
  preemptibility: maybe
  subGroups:
  - {name: ""}
  - just text
  - {name: 5, parent: 7}
  - {name: A, minMember: x}
`},
			args: []string{"-f", "a.yaml"},
			want: []string{
				`a.yaml:5: error: PodGroup ns/a: spec.minMember: "two" must be of type integer, not string (write a whole number without quotes)`,
				`a.yaml:6: error: PodGroup ns/a: spec.minSubGroup: "-1" should be greater than or equal to 0`,
				`a.yaml:7: error: PodGroup ns/a: spec.minmember: unknown field "minmember" (did you mean "minMember"?)`,
				`a.yaml:8: error: PodGroup ns/a: spec.preemptionDelay: preemptionDelay "5x" is not a duration such as 30s or 1h30m (write numbers with units, one of ns, us, ms, s, m and h, or remove the field)`,
				`a.yaml:9: error: PodGroup ns/a: spec.preemptibility: "maybe" is not supported (use one of "preemptible", "non-preemptible")`,
				`a.yaml:11: error: PodGroup ns/a: spec.subGroups[0].name: subgroup name must not be empty (give it a name)`,
				`a.yaml:12: error: PodGroup ns/a: spec.subGroups[1]: "just text" must be of type object, not string`,
				`a.yaml:13: error: PodGroup ns/a: spec.subGroups[2].name: "5" must be of type string, not integer (put the value in quotes)`,
				`a.yaml:13: error: PodGroup ns/a: spec.subGroups[2].parent: "7" must be of type string, not integer (put the value in quotes)`,
				`a.yaml:14: error: PodGroup ns/a: spec.subGroups[3].minMember: "x" must be of type integer, not string (write a whole number without quotes)`,
				`a.yaml:14: error: PodGroup ns/a: spec.subGroups[3].name: subgroup name "A" must be lowercase (rename it to "a")`,
			},
			sum: "1 file, 1 document, 1 checked: 11 errors, 0 warnings", code: 1,
		},
		"Duration": {
			reason: "an invalid duration is found alone too; the schema finds one that is not text",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "spec:\n  preemptionDelay: abc\n  stalenessGracePeriod: 5\n"},
			args:   []string{"-f", "a.yaml"},
			want: []string{
				`a.yaml:5: error: PodGroup ns/a: spec.preemptionDelay: preemptionDelay "abc" is not a duration such as 30s or 1h30m (write numbers with units, one of ns, us, ms, s, m and h, or remove the field)`,
				`a.yaml:6: error: PodGroup ns/a: spec.stalenessGracePeriod: "5" must be of type string, not integer (put the value in quotes)`,
			},
			sum: "1 file, 1 document, 1 checked: 2 errors, 0 warnings", code: 1,
		},
		"Naming": {
			reason: "what kubectl would not even find is still ours",
			files: map[string]string{
				"a.yaml": "apiVersion: scheduling.run.ai/v1\nkind: PodGroup\nmetadata: {name: a}",
				"b.yaml": "apiVersion: scheduling.run.ai/v2alpha2\nkind: Podgroup\nmetadata: {name: a}",
				"c.yaml": "kind: PodGroup\nmetadata: {name: b}",
				"d.yaml": "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nspec: {}",
			},
			args: []string{"-f", "."},
			want: []string{
				`a.yaml:1: error: PodGroup a: apiVersion: version "v1" is not served, only v2alpha2 (write "scheduling.run.ai/v2alpha2")`,
				`b.yaml:2: error: Podgroup a: kind: kind "Podgroup" is unknown (write "PodGroup")`,
				`c.yaml:1: error: PodGroup b: apiVersion: is required (write "scheduling.run.ai/v2alpha2")`,
				`d.yaml:1: error: PodGroup: metadata.name: name or generateName is required (add it)`,
			},
			sum: "4 files, 4 documents, 4 checked: 4 errors, 0 warnings", code: 1,
		},
		"NotASpec": {
			reason: "a spec of the wrong type is one finding",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "spec: 5\n"},
			args:   []string{"-f", "a.yaml"},
			want:   []string{`a.yaml:4: error: PodGroup ns/a: spec: "5" must be of type object, not integer`},
			sum:    "1 file, 1 document, 1 checked: 1 error, 0 warnings", code: 1,
		},
		"BadYAML": {
			reason: "a document that cannot be read does not hide the others",
			files:  map[string]string{"a.yaml": "a: [\n---\n" + clitest.PodGroupHead + "spec: {subGroups: [{name: A}]}"},
			args:   []string{"-f", "a.yaml"},
			want: []string{
				`a.yaml:1: error: invalid YAML: did not find expected node content`,
				`a.yaml:6: error: PodGroup ns/a: spec.subGroups[0].name: subgroup name "A" must be lowercase (rename it to "a")`,
			},
			sum: "1 file, 1 document, 1 checked: 2 errors, 0 warnings", code: 1,
		},
		"DuplicateKey": {
			reason: "a key set twice loses a value",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "spec:\n  minMember: 1\n  minMember: 2\n"},
			args:   []string{"-f", "a.yaml"},
			want:   []string{"a.yaml:6: error: PodGroup ns/a: spec.minMember: set before on line 5, and only the last value counts (remove one of the two)"},
			sum:    "1 file, 1 document, 1 checked: 1 error, 0 warnings", code: 1,
		},
		"DuplicateObject": {
			reason: "the same object twice is a warning, and warnings pass",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "---\n" + strings.Replace(clitest.PodGroupHead, "ns}", "other}", 1), "b.yaml": clitest.PodGroupHead},
			args:   []string{"-f", "."},
			want:   []string{"b.yaml:3: warning: PodGroup ns/a: metadata.name: the same object is defined in a.yaml:3, and the last one applied wins (remove or rename one of the two)"},
			sum:    "2 files, 3 documents, 3 checked: 0 errors, 1 warning",
		},
		"Strict": {
			reason: "with --strict warnings count",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "spec: {minSubGroup: 1}"},
			args:   []string{"-f", "a.yaml", "--strict", "-o", "table"},
			want:   []string{"a.yaml:4: warning: PodGroup ns/a: spec.minSubGroup: 1 asks for subgroups, but the group has none"},
			sum:    "1 file, 1 document, 1 checked: 0 errors, 1 warning", code: 1,
		},
		"Stdin": {
			reason: "standard input is a file like others",
			stdin:  clitest.PodGroupHead + "spec: {subGroups: [{name: A}]}", args: []string{"-f", "-"},
			want: []string{`<stdin>:4: error: PodGroup ns/a: spec.subGroups[0].name: subgroup name "A" must be lowercase (rename it to "a")`},
			sum:  "1 file, 1 document, 1 checked: 1 error, 0 warnings", code: 1,
		},
		"List": {
			reason: "items of lists are objects",
			stdin:  "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroupList\nitems:\n- metadata: {name: a}\n  spec:\n    subGroups:\n    - name: A\n", args: []string{"-f", "-"},
			want: []string{`<stdin>:7: error: PodGroup a: spec.subGroups[0].name: subgroup name "A" must be lowercase (rename it to "a")`},
			sum:  "1 file, 1 document, 1 checked: 1 error, 0 warnings", code: 1,
		},
		"Unreadable": {
			reason: "a file that cannot be read is worse than findings, and the others are still checked",
			files:  map[string]string{"a.yaml": clitest.PodGroupHead + "spec: {subGroups: [{name: A}]}"},
			args:   []string{"nope.yaml", "a.yaml"},
			want: []string{
				// Flags come first, then arguments, each in their order.
				"nope.yaml: error: cannot read: no such file or directory",
				`a.yaml:4: error: PodGroup ns/a: spec.subGroups[0].name: subgroup name "A" must be lowercase (rename it to "a")`,
			},
			sum: "2 files, 1 document, 1 checked: 2 errors, 0 warnings", code: 2,
		},
		"Terminal": {
			reason: "text from a manifest cannot steer the terminal",
			stdin:  clitest.PodGroupHead + `spec: {subGroups: [{name: "A\e[31m\n\u202e"}]}`, args: []string{"-f", "-"},
			want: []string{
				`<stdin>:4: error: PodGroup ns/a: spec.subGroups[0].name: subgroup name "A\x1b[31m\n\u202e" must be lowercase (rename it to "a\x1b[31m\n\u202e")`,
				`<stdin>:4: warning: PodGroup ns/a: spec.subGroups[0].name: "A\x1b[31m\n\u202e" cannot be a label value, which must begin and end with a letter or digit, with only those and '-', '_', '.' between, so no pod can join it`,
			},
			sum: "1 file, 1 document, 1 checked: 1 error, 1 warning", code: 1,
		},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clitest.Folder(t, tc.files)
			got := clitest.Run(t, New, tc.stdin, tc.args...)

			if diff := cmp.Diff(tc.want, clitest.Lines(got.Out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.sum+"\n", got.ErrOut); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}

			if got.Code != tc.code || got.Err != "" {
				t.Errorf("exit %d with %q, want %d and nothing left to say", got.Code, got.Err, tc.code)
			}
		})
	}
}

func TestLintUsage(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Nothing": {reason: "there must be something to check", want: "nothing to check: name files or folders with -f, or - for standard input"},
		"Format":  {reason: "formats are known by name", args: []string{"-f", "-", "-o", "xml"}, want: `unknown output format "xml": use one of text, json, yaml, sarif, github, jsonpath=TEMPLATE`},
		"Flag":    {reason: "so are flags", args: []string{"--nope"}, want: "unknown flag: --nope\nSee 'lint --help' for usage"},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(clitest.Result{Code: command.ExitBlind, Err: tc.want}, clitest.Run(t, New, "", tc.args...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLintMachine(t *testing.T) {
	const text = clitest.PodGroupHead + "spec: {subGroups: [{name: A}]}"

	want := map[string]any{
		"apiVersion": "cli.arbor.dev/v1", "kind": "LintReport",
		"findings": []any{map[string]any{
			"file": "<stdin>", "line": 4.0, "severity": "error",
			"object": map[string]any{"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "namespace": "ns", "name": "a"},
			"reason": "SubGroupNameNotLowercase", "field": "spec.subGroups[0].name", "value": "A",
			"message": `subgroup name "A" must be lowercase`, "fix": `rename it to "a"`,
		}},
		"summary": map[string]any{"files": 1.0, "documents": 1.0, "checked": 1.0, "errors": 1.0, "warnings": 0.0},
	}

	for _, format := range []string{"json", "yaml"} {
		r := clitest.Run(t, New, text, "-f", "-", "-o", format)
		if r.Code != command.ExitFound || r.ErrOut != "" {
			t.Errorf("%s: exit %d, %q on stderr", format, r.Code, r.ErrOut)
		}

		var got map[string]any
		if err := yaml.Unmarshal([]byte(r.Out), &got); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}

	if r := clitest.Run(t, New, clitest.PodGroupHead, "-f", "-", "-o", "json"); !strings.Contains(r.Out, `"findings": []`) {
		t.Errorf("no findings are an empty list, got %s", r.Out)
	}
}

// TestExamples holds the examples to what they and their README promise.
func TestExamples(t *testing.T) {
	readme, err := os.ReadFile("../../../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}

	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		var report linter.Report
		if err := json.Unmarshal([]byte(clitest.Run(t, New, "", "-f", file, "-o", "json").Out), &report); err != nil {
			t.Fatal(err)
		}

		verdict, promise := "# Accepted: ", "| accepted"

		// Of several problems, one of a later document is named: the first
		// document is let in.
		for _, f := range report.Findings {
			verdict, promise = "# Refused: "+f.Message, "| refused: `"+f.Message+"`"
			if bytes.HasPrefix(text, []byte(verdict)) {
				break
			}
		}

		if !bytes.HasPrefix(text, []byte(verdict)) {
			t.Errorf("%s does not begin with:\n%s", file, verdict)
		}

		row := fmt.Sprintf("| [%[1]s](%[1]s) %[2]s", filepath.Base(file), promise)
		if !strings.Contains(string(readme), row) {
			t.Errorf("the README of the examples has no row that begins with:\n%s", row)
		}
	}
}

// lintText lints one text and returns the report as JSON.
func lintText(ctx context.Context, l *linter.Linter, text []byte) ([]byte, error) {
	return json.Marshal(linter.Combine([]linter.FileReport{l.File(ctx, manifest.Parse("a.yaml", text))}))
}

// FuzzLint lints arbitrary text: no panic, and the same report twice.
func FuzzLint(f *testing.F) {
	f.Add([]byte(clitest.PodGroupHead + "spec: {minMember: 1, subGroups: [{name: a}, {name: B, parent: a, minMember: x}]}"))
	f.Add([]byte("kind: PodGroup\n---\n" + clitest.PodGroupHead + "spec: {a: 1, b: 2}\n---\n" + clitest.PodGroupHead + "status: {x: [1, {y: z}]}"))
	f.Add([]byte("apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {labels: {a: 1, b: 2}, x: 1, y: {}}\nspec: []"))

	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(text)
	}

	l := linter.New()

	f.Fuzz(func(t *testing.T, text []byte) {
		one, err := lintText(t.Context(), l, text)
		if err != nil {
			t.Fatal(err)
		}

		two, err := lintText(t.Context(), l, text)
		if err != nil {
			t.Fatal(err)
		}

		if !bytes.Equal(one, two) {
			t.Fatalf("first %s, then %s", one, two)
		}
	})
}

// thousand writes 1,000 small manifests and goes there.
func thousand(t testing.TB) {
	t.Helper()

	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("d%d/f%d.yaml", i%10, i)] = strings.Replace(clitest.PodGroupHead, "name: a", fmt.Sprintf("name: a%d", i), 1) +
			"spec:\n  minMember: 2\n  subGroups:\n  - name: master\n    minMember: 1\n  - name: workers\n    parent: master\n    minMember: 4\n"
	}

	clitest.Folder(t, files)
}

func TestThousandFiles(t *testing.T) {
	thousand(t)

	if r := clitest.Run(t, New, "", "-f", "."); r.ErrOut != "1000 files, 1000 documents, 1000 checked: 0 errors, 0 warnings\n" || r.Code != 0 {
		t.Errorf("exit %d: %s", r.Code, r.ErrOut)
	}
}

// BenchmarkLint1000 is a whole run over 1,000 files, compiling the schemas
// included.
func BenchmarkLint1000(b *testing.B) {
	thousand(b)
	lintAll(b)
}

func lintAll(b *testing.B) {
	b.Helper()

	for b.Loop() {
		cmd := New(genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard})
		cmd.SetArgs([]string{"."})
		if err := cmd.ExecuteContext(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
