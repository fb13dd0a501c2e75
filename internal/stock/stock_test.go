package stock

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/krm"
)

func TestInputKey(t *testing.T) {
	if inputKey != enov1.AnnotationInputKey {
		t.Errorf("inputs are known by %s, want %s", inputKey, enov1.AnnotationInputKey)
	}
}

// run runs a command for the Composition default/site.
func run(t *testing.T, render Renderer, input string, args ...string) (krm.Output, string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := Command{Name: "program", Release: "v1", Register: func(*flag.FlagSet) {}, Render: render}
	env := func(name string) string {
		return map[string]string{"COMPOSITION_NAME": "site", "COMPOSITION_NAMESPACE": "default"}[name]
	}
	if err := c.Run(args, env, strings.NewReader(input), &stdout, &stderr); err != nil {
		return krm.Output{}, "", err
	}
	out, err := krm.Decode(stdout.Bytes())
	if err != nil {
		t.Fatalf("the manager cannot read it: %v\n%s", err, stdout.String())
	}

	return out, stdout.String(), nil
}

// parsed renders a text.
func parsed(text string) Renderer {
	return func(Request) (Rendering, error) {
		objects, err := Parse("a.yaml", []byte(text))

		return Rendering{Objects: objects}, err
	}
}

func failure(out krm.Output) string {
	if len(out.Results) > 0 && out.Results[0].Severity == enov1.SeverityError {
		return out.Results[0].Message
	}

	return ""
}

func TestRender(t *testing.T) {
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	cases := map[string]struct {
		reason string
		text   string
		args   []string
		want   []string // objects
		fails  string
	}{
		"Namespace": {reason: "An object without a namespace is in that of the Composition.", text: config, want: []string{"ConfigMap default/a"}},
		"Flag":      {reason: "Compositions can be in one namespace and their objects in another.", text: config, args: []string{"--namespace=other"}, want: []string{"ConfigMap other/a"}},
		"Own": {
			reason: "A namespace that is written is kept.",
			text:   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n", want: []string{"ConfigMap b/a"},
		},
		"Cluster": {
			reason: "A ClusterRole has no namespace.",
			text:   "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n", want: []string{"ClusterRole a"},
		},
		"Defined": {
			reason: "A definition in the same rendering says that its kind has no namespace.",
			text: "apiVersion: example.com/v1\nkind: Tree\nmetadata: {name: a}\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: trees.example.com}\n" +
				"spec: {scope: Cluster, group: example.com, names: {kind: Tree}}\n",
			want: []string{"Tree a", "CustomResourceDefinition trees.example.com"},
		},
		"Unknown": {
			reason: "A kind that is not known gets a namespace; delivery drops it if the server says so.",
			text:   "apiVersion: example.com/v1\nkind: Tree\nmetadata: {name: a}\n", want: []string{"Tree default/a"},
		},
		"Patches": {
			reason: "Several Patches may change one object, and are where that is.",
			text: "apiVersion: eno.azure.io/v1\nkind: Patch\nmetadata: {name: a}\npatch: {apiVersion: v1, kind: Node, ops: []}\n---\n" +
				"apiVersion: eno.azure.io/v1\nkind: Patch\nmetadata: {name: a}\npatch: {apiVersion: v1, kind: Node, ops: []}\n",
			want: []string{"Patch of Node a", "Patch of Node a (2)"},
		},
		"List":       {reason: "Lists are flattened, as kubectl does.", text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n", want: []string{"Secret default/a"}},
		"Empty":      {reason: "A file with nothing but comments wants no objects.", text: "# nothing\n---\n# here\n", want: nil},
		"Twice":      {reason: "Both places are named.", text: config + "---\n" + config, fails: "a.yaml, document 2, line 5: ConfigMap default/a is there already, in a.yaml, document 1, line 1"},
		"Versions":   {reason: "Versions of a group are the same object.", text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\napiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}\n", fails: "a.yaml, document 2, line 5: Deployment default/a is there already, in a.yaml, document 1, line 1"},
		"Namespaces": {reason: "A cluster-scoped object is the same in each namespace.", text: "apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: b}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: c}\n", fails: "a.yaml, document 2, line 5: Node c/a is there already, in a.yaml, document 1, line 1"},
		"NoName":     {reason: "The field is named.", text: config + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", fails: "a.yaml, document 2, line 5: metadata.name is missing"},
		"NoMeta":     {reason: "The field is named.", text: "apiVersion: v1\nkind: ConfigMap\n", fails: "a.yaml, document 1, line 1: metadata.name is missing"},
		"BadMeta":    {reason: "The field is named.", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: a\n", fails: "a.yaml, document 1, line 1: metadata is a string, want a map"},
		"NoKind":     {reason: "The field is named.", text: "apiVersion: v1\n", fails: "a.yaml, document 1, line 1: kind is missing"},
		"EmptyKind":  {reason: "The field is named.", text: "apiVersion: v1\nkind: ''\n", fails: "a.yaml, document 1, line 1: kind is empty"},
		"Generated":  {reason: "A name that the server makes is another one each time.", text: "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", fails: "a.yaml, document 1, line 1: metadata.generateName cannot be used: the object would be another one in every synthesis; set metadata.name"},
		"Number":     {reason: "Names are strings.", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 7}\n", fails: "a.yaml, document 1, line 1: metadata.name is a number, want a string: put it in quotes"},
		"Annotation": {
			reason: "Everybody forgets these quotes once.",
			text:   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {eno.azure.io/readiness-group: 1}}\n",
			fails:  "a.yaml, document 1, line 1: metadata.annotations[eno.azure.io/readiness-group] is a number, want a string: put it in quotes",
		},
		"Labels": {reason: "The field is named.", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: [x]}\n", fails: "a.yaml, document 1, line 1: metadata.labels is a list, want a map"},
		"Text":   {reason: "A text that is no manifest is not passed over.", text: config + "---\nhello\n", fails: "a.yaml, line 5: the document is not an object"},
		"Syntax": {reason: "The line is named.", text: "a: b\nc: d: e\n", fails: "a.yaml, line 2: invalid YAML: mapping values are not allowed in this context"},
		"Key":    {reason: "Of two values one would be lost.", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: '1'\n  x: '2'\n", fails: "a.yaml, document 1, line 1: data.x is set twice, on lines 5 and 6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, parsed(tc.text), "", tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range out.Items {
				got = append(got, i.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.fails, failure(out)); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Output that differs between two renderings is an error, and its value is not shown.
func TestTwice(t *testing.T) {
	const head = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	const why = ": two renderings of the same inputs must not differ; remove what is random or depends on the time"
	cases := map[string]struct {
		reason        string
		first, second string
		want          string
	}{
		"Same":   {"Comments and the order of fields are not part of an object.", head, "# later\nkind: Secret\napiVersion: v1\nmetadata: {name: a}\n", ""},
		"Value":  {"The field is named.", head + "stringData: {k: one}\n", head + "stringData: {k: two}\n", "a.yaml, document 1, line 1: stringData.k of Secret default/a is different each time" + why},
		"Field":  {"So is one that is not always there.", head, head + "type: x\n", "a.yaml, document 1, line 1: type of Secret default/a is different each time" + why},
		"Type":   {"A string is not a number.", head + "x: [1]\n", head + "x: ['1']\n", "a.yaml, document 1, line 1: x[0] of Secret default/a is different each time" + why},
		"Shape":  {"A map is not a list.", head + "x: {a: 1}\n", head + "x: [1]\n", "a.yaml, document 1, line 1: x of Secret default/a is different each time" + why},
		"Length": {"A list can be longer.", head + "x: [1]\n", head + "x: [1, 2]\n", "a.yaml, document 1, line 1: x of Secret default/a is different each time" + why},
		"More":   {"An object can be there or not.", head, head + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n", "a.yaml, document 2, line 5: Pod default/b is not there each time" + why},
		"Fewer":  {"Also the other way.", head + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n", head, "a.yaml, document 2, line 5: Pod default/b is not there each time" + why},
		"Fails":  {"It can also fail.", head, "a: b: c\n", "the second rendering failed, and the first did not: a.yaml, line 1: invalid YAML: mapping values are not allowed in this context"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, func(r Request) (Rendering, error) {
				if r.Repeated {
					return parsed(tc.second)(r)
				}

				return parsed(tc.first)(r)
			}, "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, failure(out)); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// resourceList is what the manager sends.
func resourceList(t *testing.T, inputs ...krm.Input) string {
	t.Helper()
	data, err := krm.Encode(inputs, nil)
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

func TestInputs(t *testing.T) {
	configMap := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"a.yaml": "text", ".env": "b"}, "binaryData": map[string]any{"b": "AAE="}}
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": "c2VjcmV0"}}
	other := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}
	var got []string
	_, _, err := run(t, func(r Request) (Rendering, error) {
		got = []string{r.Composition, r.Namespace}
		for _, in := range r.Inputs {
			got = append(got, in.Key, in.Kind)
			for _, name := range in.Names() {
				got = append(got, fmt.Sprintf("%s=%q", name, in.Files[name]))
			}
		}

		return Rendering{Warnings: []string{"careful"}}, nil
	}, resourceList(t, krm.Input{Key: "second", Object: configMap}, krm.Input{Key: "first", Object: secret}, krm.Input{Key: "third", Object: other}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"site", "default", "second", "ConfigMap", `.env="b"`, `a.yaml="text"`, `b="\x00\x01"`, "first", "Secret", `a="secret"`, "third", "Deployment"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBadInputs(t *testing.T) {
	item := func(key, rest string) string {
		return fmt.Sprintf(`{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"eno.azure.io/input-key":%q}}%s}]}`, key, rest)
	}
	cases := map[string]struct{ reason, input, want string }{
		"NoJSON":  {"It says what was wanted.", "hello", "cannot read the inputs: standard input is not a ResourceList in JSON: invalid character"},
		"Kind":    {"A manifest is not a list.", `{"kind":"ConfigMap"}`, `cannot read the inputs: standard input has kind "ConfigMap", want ResourceList`},
		"NoKey":   {"The annotation is named.", `{"kind":"ResourceList","items":[{}]}`, "cannot read the inputs: items[0]: annotation eno.azure.io/input-key is missing"},
		"Path":    {"An input must not escape from its directory.", item("../a", ""), `cannot read the inputs: items[0]: input "../a": the key cannot be the name of a file`},
		"Entry":   {"Nor must an entry of it.", item("a", `,"data":{"../b":""}`), `cannot read the inputs: items[0]: input "a": data[../b]: the key cannot be the name of a file`},
		"Value":   {"The field is named.", item("a", `,"data":{"b":1}`), `cannot read the inputs: items[0]: input "a": data[b] is not a string`},
		"Data":    {"The field is named.", item("a", `,"data":[]`), `cannot read the inputs: items[0]: input "a": data is not a map`},
		"Base64":  {"The field is named.", item("a", `,"binaryData":{"b":"?"}`), `cannot read the inputs: items[0]: input "a": binaryData[b] is not base64`},
		"Twice":   {"Keys are unique.", strings.Replace(item("a", ""), "]}", `,{"metadata":{"annotations":{"eno.azure.io/input-key":"a"}}}]}`, 1), `cannot read the inputs: items[1]: there are two inputs "a"`},
		"Nothing": {"A person can run it without inputs.", " \n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, parsed(""), tc.input)
			if err != nil {
				t.Fatal(err)
			}
			if got := failure(out); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	if _, _, err := run(t, parsed(""), "", "--help"); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("got %v, want the help", err)
	}
	if _, _, err := run(t, parsed(""), "", "more"); err == nil || err.Error() != `program takes no arguments, but got "more"` {
		t.Errorf("got %v", err)
	}
	var stdout bytes.Buffer
	c := Command{Name: "program", Release: "v1", Register: func(*flag.FlagSet) {}}
	if err := c.Run([]string{"--version"}, os.Getenv, nil, &stdout, &stdout); err != nil || stdout.String() != "program v1\n" {
		t.Errorf("it prints %q, %v", stdout.String(), err)
	}
}

// Output is a list even if it is empty, and characters of HTML are as they are.
func TestOutput(t *testing.T) {
	_, text, err := run(t, parsed(""), "")
	if err != nil || text != `{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList","items":[]}`+"\n" {
		t.Errorf("got %s, %v", text, err)
	}
	_, text, err = run(t, parsed("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: <a&b>, big: 9007199254740993}\n"), "")
	if err != nil || !strings.Contains(text, `"x":"<a&b>"`) || !strings.Contains(text, `"big":9007199254740993`) {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"a.yaml": "a", "sub/b.yaml": "b", ".env": "c", ".git/x": "no", "..2026/d.yaml": "d"}
	for name, content := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// As Kubernetes mounts ConfigMaps.
	if err := errors.Join(os.Symlink("..2026", filepath.Join(dir, "..data")), os.Symlink("..data/d.yaml", filepath.Join(dir, "d.yaml"))); err != nil {
		t.Fatal(err)
	}
	all, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{"a.yaml": []byte("a"), "sub/b.yaml": []byte("b"), ".env": []byte("c"), "d.yaml": []byte("d")}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	if _, err := ReadDir(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "none: no such file or directory; put the files there, or set --dir") {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "e.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDir(dir); err == nil || !strings.Contains(err.Error(), "e.yaml: ") {
		t.Errorf("a link out of the directory: %v", err)
	}
}

func TestAnnotations(t *testing.T) {
	o := Object{Content: map[string]any{"metadata": map[string]any{}}}
	o.RemoveAnnotation("a")
	o.Annotate("a", "1")
	if value, ok := o.Annotation("a"); !ok || value != "1" {
		t.Errorf("got %q, %v", value, ok)
	}
	o.RemoveAnnotation("a")
	if diff := cmp.Diff(map[string]any{"metadata": map[string]any{}}, o.Content); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A library that wants the network or a program gets neither.
func TestIsolate(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }() //nolint:reassign // as it was
	for _, name := range []string{"PATH", "NO_PROXY", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, os.Getenv(name))
	}
	isolate()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://user:secret@example.com/base", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "cannot load https://user:xxxxx@example.com/base: synthesizers have no network; put the file into the image") {
		t.Errorf("a request: %v", err)
	}
	if got := os.Getenv("PATH"); got != "" {
		t.Errorf("programs are found in %s", got)
	}
}

// Whatever is in a file, it becomes one error or objects that the manager can read.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]\n",
		"a: &a [*a]\n", "---\n---\n# x\n", "{\"apiVersion\":\"v1\"}", "metadata: {annotations: {1: 2}}\n", "x: .nan\n", "x: 1e400\n", "hello", "\xff\xfe", "a: \"\\x00\"\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: null}\nx: .inf\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, _, err := run(t, parsed(text), "")
		if err == nil {
			for _, i := range out.Items {
				if !json.Valid([]byte(i.Manifest)) || i.Name == "" {
					t.Errorf("it has written %s", i.Manifest)
				}
			}
		}
	})
}

// Whatever the manager sends, files of inputs stay in their directories.
func FuzzInputs(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"ResourceList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"eno.azure.io/input-key":"a"}},"data":{"b":"c"}}]}`,
		`{"kind":"ResourceList","items":null}`, `[]`, `{"kind":"ResourceList","items":[null,{"metadata":[]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		inputs, err := readInputs(data)
		if err != nil {
			return
		}
		for _, in := range inputs {
			for _, name := range append(in.Names(), in.Key) {
				if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00") || name == "." {
					t.Errorf("%q is not the name of a file", name)
				}
			}
		}
	})
}
