package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/stock"
)

const (
	about     = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "
)

// output is what the program writes.
type output struct {
	Items   []map[string]any `json:"items"`
	Results []struct {
		Message  string `json:"message"`
		Severity string `json:"severity"`
	} `json:"results"`
}

// run runs the program on a chart for the Composition prod/site. Inputs are the
// values of ConfigMaps.
func run(t *testing.T, files map[string]string, inputs []string, args ...string) output {
	t.Helper()
	dir := t.TempDir()
	for file, content := range files {
		at := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	items := make([]any, 0, len(inputs))
	for i, text := range inputs {
		items = append(items, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"values.yaml": text},
			"metadata": map[string]any{"annotations": map[string]any{"eno.azure.io/input-key": fmt.Sprintf("in%d", i)}},
		})
	}

	return runWith(t, items, append(args, "--chart="+dir)...)
}

func runWith(t *testing.T, items []any, args ...string) output {
	t.Helper()
	data, err := json.Marshal(map[string]any{"kind": "ResourceList", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	env := func(name string) string {
		return map[string]string{"COMPOSITION_NAME": "site", "COMPOSITION_NAMESPACE": "prod"}[name]
	}
	if err := command().Run(args, env, bytes.NewReader(data), &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	var out output
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatal(err)
	}

	return out
}

// brief is an object in a line: kind, namespace and name, annotations, data.
func brief(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	text := fmt.Sprintf("%v %v/%v", object["kind"], metadata["namespace"], metadata["name"])
	for _, part := range []any{metadata["annotations"], object["data"]} {
		if part != nil {
			data, _ := json.Marshal(part) //nolint:errchkjson // it was JSON before
			text += " " + string(data)
		}
	}

	return text
}

func hooked(kind, name, events string, more ...string) string {
	text := "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n  annotations:\n    helm.sh/hook: " + events + "\n"
	for _, line := range more {
		text += "    " + line + "\n"
	}

	return text
}

func TestRender(t *testing.T) {
	const job = `"eno.azure.io/readiness":"self.status.conditions.filter(c, c.type == \"Complete\")"`
	sub := map[string]string{
		"Chart.yaml":                "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: [{name: db, version: 1.0.0, condition: db.enabled}]\n",
		"charts/db/Chart.yaml":      "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"charts/db/values.yaml":     "size: 1\n",
		"charts/db/templates/a.yml": configMap + "db\ndata: {size: '{{ .Values.size }}'}\n",
		"templates/a.yaml":          configMap + "web\n",
	}
	cases := map[string]struct {
		reason   string
		files    map[string]string
		inputs   []string
		args     []string
		want     []string
		warnings []string
	}{
		"Values": {
			reason: "Values are merged in the order of inputs, over those of the chart; null removes one.",
			files: map[string]string{
				"Chart.yaml": about, "values.yaml": "a: chart\nb: chart\nc: {left: chart, right: chart}\nd: chart\n",
				"templates/a.yaml": configMap + "{{ .Release.Name }}\ndata: {a: {{ .Values.a }}, b: {{ .Values.b }}, c: '{{ .Values.c.left }} {{ .Values.c.right }}', d: '{{ .Values.d }}', ns: {{ .Release.Namespace }}}\n",
			},
			inputs: []string{"b: one\nc: {left: one}\n", "b: two\nd: null\n"},
			want:   []string{`ConfigMap prod/site {"a":"chart","b":"two","c":"one chart","d":"","ns":"prod"}`},
		},
		"Flags": {
			reason: "What templates see can be set.",
			files: map[string]string{
				"Chart.yaml":       about + "kubeVersion: '>=1.30'\n",
				"templates/a.yaml": configMap + "{{ .Release.Name }}\ndata: {v: '{{ .Capabilities.KubeVersion.Minor }}', has: '{{ .Capabilities.APIVersions.Has \"example.com/v1\" }} {{ .Capabilities.APIVersions.Has \"apps/v1\" }}'}\n",
			},
			args: []string{"--release-name=mine", "--kube-version=1.36", "--api-versions=example.com/v1, example.com/v2"},
			want: []string{`ConfigMap prod/mine {"has":"true true","v":"36"}`},
		},
		"Order": {
			reason: "Definitions come first and stay, then templates by path; partials and notes are no objects.",
			files: map[string]string{
				"Chart.yaml": about, "templates/b.yaml": configMap + "b\n---\n# nothing\n---\n" + configMap + "b2\n", "templates/a.yaml": configMap + "{{ include \"n\" . }}\n",
				"templates/_h.tpl": `{{ define "n" }}a{{ end }}`, "templates/NOTES.txt": "Hello: {{ .Release.Name }}: there\n",
				"crds/c.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: c}\n",
			},
			want: []string{`CustomResourceDefinition <nil>/c {"arbor-control.dev/prune":"never","eno.azure.io/deletion-strategy":"orphan"}`, "ConfigMap prod/a", "ConfigMap prod/b", "ConfigMap prod/b2"},
		},
		"Keep": {
			reason: "What Helm keeps is kept.",
			files:  map[string]string{"Chart.yaml": about, "templates/a.yaml": configMap + "a\n  annotations: {helm.sh/resource-policy: keep, arbor-control.dev/prune: last}\n"},
			want:   []string{`ConfigMap prod/a {"arbor-control.dev/prune":"last","eno.azure.io/deletion-strategy":"orphan","helm.sh/resource-policy":"keep"}`},
		},
		"Hooks": {
			reason: "Hooks are in groups of their own, in the order of weights, and Jobs run again when they change.",
			files: map[string]string{
				"Chart.yaml": about, "templates/a.yaml": configMap + "a\n",
				"templates/b.yaml": hooked("Job", "pre", "pre-install,pre-upgrade", `helm.sh/hook-weight: "5"`, "helm.sh/hook-delete-policy: hook-succeeded") + "spec: {x: 1}\n",
				"templates/c.yaml": hooked("ServiceAccount", "pre", "pre-install", `helm.sh/hook-weight: "-5"`),
				"templates/d.yaml": hooked("Pod", "post.-", "post-upgrade"),
				"templates/e.yaml": hooked("ConfigMap", "both", "post-install, pre-upgrade, post-delete"),
			},
			want: []string{
				"ConfigMap prod/a", `Job prod/pre-5041bf1f {` + job + `,"eno.azure.io/readiness-group":"-101"}`, `ServiceAccount prod/pre {"eno.azure.io/readiness-group":"-102"}`,
				`Pod prod/post-74234e98 {"eno.azure.io/readiness":"self.status.phase == \"Succeeded\"","eno.azure.io/readiness-group":"1"}`, `ConfigMap prod/both {"eno.azure.io/readiness-group":"1"}`,
			},
		},
		"Groups": {
			reason: "Before all groups that the chart names, and after all; a hook may name its own.",
			files: map[string]string{
				"Chart.yaml": about, "templates/a.yaml": configMap + "a\n  annotations: {eno.azure.io/readiness-group: '-500'}\n", "templates/b.yaml": configMap + "b\n  annotations: {eno.azure.io/readiness-group: '7'}\n",
				"templates/c.yaml": hooked("ConfigMap", "c", "pre-install"), "templates/d.yaml": hooked("ConfigMap", "d", "post-install"), "templates/e.yaml": hooked("ConfigMap", "e", "post-install", "eno.azure.io/readiness-group: '3'"),
			},
			want: []string{
				`ConfigMap prod/a {"eno.azure.io/readiness-group":"-500"}`, `ConfigMap prod/b {"eno.azure.io/readiness-group":"7"}`, `ConfigMap prod/c {"eno.azure.io/readiness-group":"-501"}`,
				`ConfigMap prod/d {"eno.azure.io/readiness-group":"8"}`, `ConfigMap prod/e {"eno.azure.io/readiness-group":"3"}`,
			},
		},
		"Dropped": {
			reason: "What Helm runs at other times is left out, and that is said.",
			files: map[string]string{
				"Chart.yaml": about, "templates/a.yaml": hooked("Pod", "a", "test"), "templates/b.yaml": hooked("Job", "b", "pre-delete"), "templates/c.yaml": hooked("Job", "c", "post-rollback"), "templates/d.yaml": hooked("Job", "d", "crd-install"),
			},
			warnings: []string{
				`web/templates/a.yaml, document 1, line 1: Pod a is left out: it is a hook for "test", which has no meaning here`,
				`web/templates/b.yaml, document 1, line 1: Job b is left out: it is a hook for "pre-delete", which has no meaning here`,
				`web/templates/c.yaml, document 1, line 1: Job c is left out: it is a hook for "post-rollback", which has no meaning here`,
				`web/templates/d.yaml, document 1, line 1: Job d is left out: it is a hook for "crd-install", which has no meaning here`,
			},
		},
		"Twice": {
			reason: "Charts set keys twice, and Helm takes the last one.",
			files:  map[string]string{"Chart.yaml": about, "templates/a.yaml": configMap + "a\ndata:\n  x: '1'\n  x: '2'\n"},
			want:   []string{`ConfigMap prod/a {"x":"2"}`}, warnings: []string{"web/templates/a.yaml, document 1, line 1: data.x is set twice, on lines 6 and 7"},
		},
		"Dependency": {reason: "Dependencies that are in the chart are rendered.", files: sub, inputs: []string{"db: {size: 3}\n"}, want: []string{`ConfigMap prod/db {"size":"3"}`, "ConfigMap prod/web"}},
		"Disabled":   {reason: "Unless the values switch them off.", files: sub, inputs: []string{"db: {enabled: false}\n"}, want: []string{"ConfigMap prod/web"}},
		"Lookup":     {reason: "There is no cluster to look into, and no names to resolve.", files: map[string]string{"Chart.yaml": about, "templates/a.yaml": configMap + "a\ndata: {x: '{{ len (lookup \"v1\" \"Secret\" \"a\" \"b\") }}{{ getHostByName \"localhost\" }}'}\n"}, want: []string{`ConfigMap prod/a {"x":"0"}`}},
		"Schema": {
			reason: "Schemas may refer to JSON Schema, and to themselves.",
			files:  map[string]string{"Chart.yaml": about, "values.schema.json": `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/web","properties":{"a":{"$ref":"https://example.com/web#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, "templates/a.yaml": configMap + "a\n"},
			inputs: []string{"a: b\n"}, want: []string{"ConfigMap prod/a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := run(t, tc.files, tc.inputs, tc.args...)
			var got, warnings []string
			for _, i := range out.Items {
				got = append(got, brief(i))
			}
			for _, r := range out.Results {
				if r.Severity != "warning" {
					t.Errorf("%s\n%s: %s", tc.reason, r.Severity, r.Message)
				}
				warnings = append(warnings, r.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	chart := func(template string) map[string]string {
		return map[string]string{"Chart.yaml": about, "templates/a.yaml": template}
	}
	const each = ": two renderings of the same inputs must not differ; remove what is random or depends on the time"
	cases := map[string]struct {
		reason string
		files  map[string]string
		inputs []string
		args   []string
		want   string
	}{
		"NoChart": {reason: "It says where it looked.", files: map[string]string{"a": ""}, want: "cannot load the chart DIR: Chart.yaml file is missing"},
		"Random":  {reason: "The template and the field are named, and not the value.", files: chart(configMap + "a\ndata: {password: {{ randAlphaNum 20 }}}\n"), want: "web/templates/a.yaml, document 1, line 1: data.password of ConfigMap prod/a is different each time" + each},
		"Time":    {reason: "The time is noticed even if only the year is used.", files: chart(configMap + "a\ndata: {year: '{{ now | date \"2006\" }}'}\n"), want: "web/templates/a.yaml, document 1, line 1: data.year of ConfigMap prod/a is different each time" + each},
		"RandomName": {
			reason: "Also where the object has another name each time.", files: chart(configMap + "a-{{ randAlpha 10 | lower }}\n"),
			want: "web/templates/a.yaml, document 1, line 1: metadata.name of ConfigMap prod/a-",
		},
		"Missing":   {reason: "There is no network to get it from.", files: map[string]string{"Chart.yaml": about + "dependencies: [{name: db, version: 1.0.0, repository: 'https://example.com'}]\n"}, want: "web/Chart.yaml: dependencies[0]: chart db is not in charts/: run helm dependency build before you build the image"},
		"Required":  {reason: "The message of the chart is shown.", files: chart(configMap + "{{ required \"set name\" .Values.name }}\n"), want: "chart web: "},
		"Template":  {reason: "The line is named.", files: chart("{{ if }}\n"), want: "chart web: parse error at (web/templates/a.yaml:1): missing value for if"},
		"YAML":      {reason: "The line of what was rendered is named.", files: chart("a: b\nc: d: e\n"), want: "web/templates/a.yaml, line 2: invalid YAML: mapping values are not allowed in this context"},
		"NoName":    {reason: "The document is named.", files: chart(configMap + "a\n---\nkind: X\napiVersion: v1\n"), want: "web/templates/a.yaml, document 2, line 6: metadata.name is missing"},
		"Weight":    {reason: "The field is named.", files: chart(hooked("Job", "a", "pre-install", "helm.sh/hook-weight: x")), want: `web/templates/a.yaml, document 1, line 1: metadata.annotations[helm.sh/hook-weight] "x" is not a whole number`},
		"Group":     {reason: "The field is named.", files: chart(configMap + "a\n  annotations: {eno.azure.io/readiness-group: x}\n"), want: `web/templates/a.yaml, document 1, line 1: metadata.annotations[eno.azure.io/readiness-group] "x" is not a whole number`},
		"HookGroup": {reason: "Of hooks as well.", files: chart(hooked("Job", "a", "pre-install", "eno.azure.io/readiness-group: x")), want: `web/templates/a.yaml, document 1, line 1: metadata.annotations[eno.azure.io/readiness-group] "x" is not a whole number`},
		"Definition": {
			reason: "Definitions are checked.", files: map[string]string{"Chart.yaml": about, "crds/a.yaml": "kind: X\n"},
			want: "web/crds/a.yaml, document 1, line 1: apiVersion is missing",
		},
		"DefinitionYAML": {reason: "Definitions are parsed.", files: map[string]string{"Chart.yaml": about, "crds/a.yaml": "a: b: c\n"}, want: "web/crds/a.yaml, line 1: invalid YAML: "},
		"Library":        {reason: "A library is no chart.", files: map[string]string{"Chart.yaml": about + "type: library\n"}, want: "chart web is a library: it has no objects of its own"},
		"Version":        {reason: "It says how to go on.", files: map[string]string{"Chart.yaml": about + "kubeVersion: '>=2.0'\n"}, args: []string{"--kube-version=v1.36.1"}, want: "chart web wants Kubernetes >=2.0, and this is v1.36.1: set --kube-version to the version of the cluster"},
		"BadVersion":     {reason: "The flag is named.", files: chart(""), args: []string{"--kube-version=new"}, want: `--kube-version "new": `},
		"Release":        {reason: "It says how to go on.", files: chart(""), args: []string{"--release-name=" + strings.Repeat("a", 54)}, want: "the name of the release, " + strings.Repeat("a", 54) + ", is longer than 53 characters: set --release-name"},
		"Values":         {reason: "The input is named.", files: chart(""), inputs: []string{"a: 1\n", "- b\n"}, want: `input "in1": values.yaml: `},
		"Schema":         {reason: "Values are validated.", files: map[string]string{"Chart.yaml": about, "values.schema.json": `{"properties":{"a":{"type":"string"}}}`}, inputs: []string{"a: 1\n"}, want: "chart web: values don't meet the specifications of the schema(s) in the following chart(s): web:"},
		"RemoteSchema":   {reason: "There is no network to get it from.", files: map[string]string{"Chart.yaml": about, "values.schema.json": `{"properties":{"a":{"$ref":"https://example.com/a.json"}}}`}, want: "web/values.schema.json: https://example.com/a.json is remote, and remote schemas cannot be used: put it into $defs"},
		"BadSchema":      {reason: "The file is named.", files: map[string]string{"Chart.yaml": about, "values.schema.json": `{`}, want: "web/values.schema.json: invalid JSON: "},
		"SubSchema":      {reason: "Nor for dependencies.", files: map[string]string{"Chart.yaml": about, "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/values.schema.json": `{"$schema":"https://example.com/a.json"}`}, want: "web/charts/db/values.schema.json: https://example.com/a.json is remote"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := run(t, tc.files, tc.inputs, tc.args...)
			if len(out.Results) == 0 || out.Results[0].Severity != "error" || out.Items != nil {
				t.Fatalf("%s: it has not failed: %+v", tc.reason, out)
			}
			got := out.Results[0].Message
			if at := strings.Index(got, os.TempDir()); at >= 0 && strings.HasPrefix(tc.want, "cannot load the chart") {
				_, rest, _ := strings.Cut(got[at:], ":")
				got = got[:at] + "DIR:" + rest
			}
			if !strings.HasPrefix(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestInputKinds(t *testing.T) {
	dir := t.TempDir()
	item := func(kind, data string) []any {
		return []any{map[string]any{
			"apiVersion": "v1", "kind": kind, "data": map[string]any{data: "YTogMQo="},
			"metadata": map[string]any{"annotations": map[string]any{"eno.azure.io/input-key": "in"}},
		}}
	}
	for name, content := range map[string]string{"Chart.yaml": about, "templates/a.yaml": configMap + "a\ndata: {a: '{{ .Values.a }}'}\n"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if out := runWith(t, item("Secret", "values.yaml"), "--chart="+dir); len(out.Items) != 1 || brief(out.Items[0]) != `ConfigMap prod/a {"a":"1"}` {
		t.Errorf("values of a Secret: %+v", out)
	}
	if out := runWith(t, item("Secret", "other"), "--chart="+dir); len(out.Results) != 1 || out.Results[0].Message != `input "in" has no entry values.yaml; it has ["other"]` {
		t.Errorf("an input without values: %+v", out)
	}
	if out := runWith(t, item("Node", "values.yaml"), "--chart="+dir); len(out.Results) != 1 || out.Results[0].Message != `input "in" is a Node, and only ConfigMaps and Secrets can hold values` {
		t.Errorf("an input of another kind: %+v", out)
	}
}

// Whatever the values and the hooks of a template are, what comes out is objects
// or one error.
func FuzzTemplate(f *testing.F) {
	for _, seed := range [][2]string{
		{hooked("Job", "a", "pre-install"), "a: 1\n"},
		{configMap + "{{ .Values.a }}\n", "a: b\n"},
		{"{{ toYaml .Values }}", "apiVersion: v1\nkind: X\nmetadata: {name: a}\n"},
		{"{{ range $k, $v := .Values }}{{ $k }}: {{ $v }}\n{{ end }}", "a: {b: [null]}\n"},
		{"{{ tpl .Values.a . }}", "a: '{{ .Values.b }}'\nb: c\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, template, values string) {
		out := run(t, map[string]string{"Chart.yaml": about, "templates/a.yaml": template}, []string{values})
		failed := len(out.Results) > 0 && out.Results[0].Severity == "error"
		if failed == (out.Items != nil) {
			t.Errorf("it has neither failed nor succeeded: %+v", out)
		}
		for _, i := range out.Items {
			if err := (stock.Object{Content: i}).Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
