package kustomize_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/krm"
	"github.com/arbor-control/arbor/internal/stock/kustomize"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: default}]}}}
`

// run runs the program for files and a Composition in the namespace default.
func run(t *testing.T, files map[string]string, inputs []krm.Input, args ...string) (items []string, failure string) {
	t.Helper()
	dir := t.TempDir()
	for file, content := range files {
		at := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := krm.Encode(inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if err := kustomize.Command("v1").Run(append(args, "--dir="+dir), func(string) string { return "default" }, bytes.NewReader(data), &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	out, err := krm.Decode(stdout.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range out.Items {
		items = append(items, i.Manifest)
	}
	if len(out.Results) > 0 {
		failure = out.Results[0].Message
	}

	return items, failure
}

func input(key, kind string, data map[string]any) krm.Input {
	return krm.Input{Key: key, Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "data": data,
		"metadata": map[string]any{"name": "of-somebody", "namespace": "elsewhere", "uid": "1", "labels": map[string]any{"a": "b"}},
	}}
}

func TestBuild(t *testing.T) {
	settings := []krm.Input{input("settings", "ConfigMap", map[string]any{"image": "web:2", "app.conf": "on"})}
	replacement := `resources: [deployment.yaml, inputs/settings.yaml]
replacements:
- source: {kind: ConfigMap, name: settings, fieldPath: data.image}
  targets: [{select: {kind: Deployment}, fieldPaths: ["spec.template.spec.containers.[name=web].image"]}]
`
	cases := map[string]struct {
		reason string
		files  map[string]string
		inputs []krm.Input
		args   []string
		want   []string
	}{
		"Plain": {
			reason: "The namespace is that of the Composition, and nothing of kustomize's own notes is left.",
			files:  map[string]string{"kustomization.yaml": "resources: [deployment.yaml]\nnamePrefix: my-\n", "deployment.yaml": deployment},
			want:   []string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"my-web","namespace":"default"},"spec":{"template":{"spec":{"containers":[{"image":"default","name":"web"}]}}}}`},
		},
		"Namespace": {
			reason: "A namespace of the kustomization is kept; a ClusterRole has none.",
			files: map[string]string{
				"kustomization.yaml": "namespace: own\nresources: [all.yaml]\n",
				"all.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: b}\n",
			},
			want: []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"own"}}`, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"b"}}`},
		},
		"Replacement": {
			reason: "An input is an object by its key, for replacements, and is not delivered.",
			files:  map[string]string{"kustomization.yaml": replacement, "deployment.yaml": deployment}, inputs: settings,
			want: []string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},"spec":{"template":{"spec":{"containers":[{"image":"web:2","name":"web"}]}}}}`},
		},
		"Default": {
			reason: "What the image has under the same path stands in for an input that is not bound.",
			files: map[string]string{
				"kustomization.yaml": replacement, "deployment.yaml": deployment,
				"inputs/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, annotations: {config.kubernetes.io/local-config: 'true'}}\ndata: {image: 'web:1'}\n",
			},
			want: []string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},"spec":{"template":{"spec":{"containers":[{"image":"web:1","name":"web"}]}}}}`},
		},
		"Files": {
			reason: "The entries of an input are files, for generators; an overlay is built with its base.",
			files: map[string]string{
				"overlays/one/kustomization.yaml": "resources: [../../base]\nconfigMapGenerator: [{name: conf, files: [inputs/settings/app.conf], options: {disableNameSuffixHash: true}}]\n",
				"base/kustomization.yaml":         "resources: [deployment.yaml]\n", "base/deployment.yaml": deployment,
			},
			inputs: settings, args: []string{"--path=overlays/one"},
			want: []string{
				`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},"spec":{"template":{"spec":{"containers":[{"image":"default","name":"web"}]}}}}`,
				`{"apiVersion":"v1","data":{"app.conf":"on"},"kind":"ConfigMap","metadata":{"name":"conf","namespace":"default"}}`,
			},
		},
		"Secret": {
			reason: "Secrets are decoded.",
			files:  map[string]string{"kustomization.yaml": "configMapGenerator: [{name: conf, envs: [inputs/s/.env], options: {disableNameSuffixHash: true}}]\n"},
			inputs: []krm.Input{input("s", "Secret", map[string]any{".env": "QT0x"})},
			want:   []string{`{"apiVersion":"v1","data":{"A":"1"},"kind":"ConfigMap","metadata":{"name":"conf","namespace":"default"}}`},
		},
		"Origins": {
			reason: "Whoever asks for notes of kustomize gets them.",
			files:  map[string]string{"kustomization.yaml": "resources: [a.yaml]\nbuildMetadata: [originAnnotations]\n", "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"},
			want:   []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"config.kubernetes.io/origin":"path: a.yaml\n"},"name":"a","namespace":"default"}}`},
		},
		"JSON": {
			reason: "JSON is YAML.",
			files:  map[string]string{"kustomization.yml": `{"resources": ["a.yaml"]}`, "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"},
			want:   []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`},
		},
		"Literals": {
			reason: "An address in a value is not a file.",
			files:  map[string]string{"Kustomization": "configMapGenerator: [{name: conf, literals: ['url=https://example.com/'], options: {disableNameSuffixHash: true}}]\n"},
			want:   []string{`{"apiVersion":"v1","data":{"url":"https://example.com/"},"kind":"ConfigMap","metadata":{"name":"conf","namespace":"default"}}`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items, failure := run(t, tc.files, tc.inputs, tc.args...)
			if failure != "" {
				t.Errorf("%s\n%s", tc.reason, failure)
			}
			if diff := cmp.Diff(tc.want, items); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	const cannot = " is remote, and remote bases and files cannot be used: put it into the image"
	cases := map[string]struct {
		reason string
		files  map[string]string
		args   []string
		want   string
	}{
		"None":       {reason: "The file is named.", files: map[string]string{"a.yaml": ""}, want: "there is no kustomization.yaml in the directory ."},
		"Path":       {reason: "A path leads nowhere else.", files: map[string]string{"a.yaml": ""}, args: []string{"--path=../x"}, want: `--path "../x" must be a directory within --dir`},
		"URL":        {reason: "There is no network.", files: map[string]string{"kustomization.yaml": "resources: [a.yaml, 'https://user:secret@example.com/b.yaml']\n", "a.yaml": deployment}, want: "kustomization.yaml: resources[1]: https://user:xxxxx@example.com/b.yaml" + cannot},
		"Repository": {reason: "Nor is git run.", files: map[string]string{"kustomization.yaml": "resources: ['github.com/example/base?ref=v1']\n"}, want: "kustomization.yaml: resources[0]: there is no github.com/example/base?ref=v1 in the image, and remote bases cannot be used"},
		"SSH":        {reason: "In no form.", files: map[string]string{"kustomization.yaml": "components: ['git@github.com:example/base.git']\n"}, want: "kustomization.yaml: components[0]: there is no git@github.com:example/base.git in the image, and remote bases cannot be used"},
		"InBase":     {reason: "In no base.", files: map[string]string{"kustomization.yaml": "resources: [base]\n", "base/kustomization.yaml": "resources: [ssh://git@example.com/x]\n"}, want: "base/kustomization.yaml: resources[0]: ssh://git@example.com/x" + cannot},
		"Patch":      {reason: "Patches are files, too.", files: map[string]string{"kustomization.yaml": "patches: [{path: 'https://example.com/p'}]\n"}, want: "kustomization.yaml: patches[0].path: https://example.com/p" + cannot},
		"Merge":      {reason: "In the old form as well.", files: map[string]string{"kustomization.yaml": "patchesStrategicMerge: ['https://example.com/p']\n"}, want: "kustomization.yaml: patchesStrategicMerge[0]: https://example.com/p" + cannot},
		"Generator":  {reason: "And what ConfigMaps are made of.", files: map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: ['b=https://example.com/p']}]\n"}, want: "kustomization.yaml: configMapGenerator[0].files: https://example.com/p" + cannot},
		"Schema":     {reason: "And schemas.", files: map[string]string{"kustomization.yaml": "openapi: {path: 'https://example.com/p'}\n"}, want: "kustomization.yaml: openapi.path: https://example.com/p" + cannot},
		"Charts":     {reason: "No program is run for charts.", files: map[string]string{"kustomization.yaml": "helmCharts: [{name: a}]\n"}, want: "kustomization.yaml: helmCharts: kustomize does not render Helm charts here; use arbor-synthesizer-helm"},
		"Missing":    {reason: "A file that is not there is named.", files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\n"}, want: "kustomization.yaml: resources[0]: there is no a.yaml in the image, and remote bases cannot be used"},
		"Outside":    {reason: "Files must be below the kustomization, as in kustomize.", files: map[string]string{"o/kustomization.yaml": "resources: [../a.yaml]\n", "a.yaml": deployment}, args: []string{"--path=o"}, want: "o/kustomization.yaml: accumulating resources: "},
		"Function": {
			reason: "Functions are not run.",
			files: map[string]string{
				"kustomization.yaml": "transformers: [f.yaml]\n",
				"f.yaml":             "apiVersion: example.com/v1\nkind: F\nmetadata: {name: f, annotations: {config.kubernetes.io/function: 'exec: {path: ./f.sh}'}}\n",
			},
			want: "kustomization.yaml: external plugins disabled; unable to load external plugin",
		},
		"Syntax":  {reason: "The file is named.", files: map[string]string{"kustomization.yaml": "resources: [\n"}, want: "kustomization.yaml: invalid YAML: "},
		"Unknown": {reason: "A field that is misspelled is named.", files: map[string]string{"kustomization.yaml": "resource: [a.yaml]\n"}, want: "kustomization.yaml: invalid Kustomization: "},
		"Twice":   {reason: "The files are named.", files: map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": deployment, "b.yaml": deployment}, want: "kustomization.yaml: accumulating resources: accumulation err='merging resources from 'b.yaml'"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items, failure := run(t, tc.files, nil, tc.args...)
			if !strings.HasPrefix(failure, tc.want) || failure == "" || items != nil {
				t.Errorf("%s\ngot  %s %s\nwant %s", tc.reason, failure, items, tc.want)
			}
		})
	}
}

// Whatever is in a kustomization, kustomize gets nothing from elsewhere.
func FuzzKustomization(f *testing.F) {
	for _, seed := range []string{
		"resources: [a.yaml]\n", "resources: ['https://example.com/x']\n", "bases: [b]\ncomponents: [c]\n", "configMapGenerator: [{name: a, files: ['x=a.yaml']}]\n",
		"patches: [{path: a.yaml}]\n", "generators: [a.yaml]\n", "resources: 1\n", "- a\n", "helmCharts: [{name: a, repo: 'https://example.com'}]\n", "replacements: [{path: a.yaml}]\n",
	} {
		f.Add(seed)
	}
	f.Setenv("PATH", "")
	f.Fuzz(func(t *testing.T, text string) {
		items, failure := run(t, map[string]string{"kustomization.yaml": text, "a.yaml": deployment}, nil)
		if failure != "" && items != nil {
			t.Errorf("it has failed, and written %s", items)
		}
		if strings.Contains(failure, "dial") || strings.Contains(failure, "lookup") || strings.Contains(failure, "git") && !strings.Contains(text, "git") {
			t.Errorf("it has tried to load something: %s", failure)
		}
	})
}
