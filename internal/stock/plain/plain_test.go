package plain_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/arbor-control/arbor/internal/krm"
	"github.com/arbor-control/arbor/internal/stock/plain"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "

func TestCommand(t *testing.T) {
	input := krm.Input{Key: "extra", Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"z.yaml": configMap + "z}\n", "readme.txt": "hello"}}}
	cases := map[string]struct {
		reason string
		files  map[string]string
		inputs []krm.Input
		noDir  bool
		want   []string
		fails  string
	}{
		"Order": {
			reason: "Files come in the order of their paths, documents as they stand, and other files not at all.",
			files:  map[string]string{"b.yml": configMap + "b1}\n---\n" + configMap + "b2}\n", "a/c.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`, "README.md": "x", ".hidden/d.yaml": "x", ".e.yaml": "x"},
			want:   []string{"ConfigMap default/c", "ConfigMap default/b1", "ConfigMap default/b2"},
		},
		"Inputs":  {reason: "Inputs come after files.", files: map[string]string{"zz.yaml": configMap + "a}\n"}, inputs: []krm.Input{input}, want: []string{"ConfigMap default/a", "ConfigMap default/z"}},
		"NoFiles": {reason: "Inputs alone are enough, if that is said.", noDir: true, inputs: []krm.Input{input}, want: []string{"ConfigMap default/z"}},
		"None":    {reason: "An image without manifests is a mistake, and must not empty the cluster.", files: map[string]string{"a.txt": "x"}, fails: "there are no manifests: no file in DIR, and no entry of an input, is named *.yaml, *.yml or *.json"},
		"Neither": {reason: "The same without a directory.", noDir: true, fails: "there are no manifests: no file in the inputs, and no entry of an input, is named *.yaml, *.yml or *.json"},
		"Empty":   {reason: "A file without objects is a decision.", files: map[string]string{"a.yaml": "# none\n"}, want: nil},
		"Kind": {
			reason: "Other kinds hold no files.", files: map[string]string{"a.yaml": ""}, inputs: []krm.Input{{Key: "x", Object: map[string]any{"kind": "Node", "apiVersion": "v1"}}},
			fails: `input "x" is a Node, and only ConfigMaps and Secrets can hold manifests`,
		},
		"Named": {reason: "An error in an input names it.", files: map[string]string{"a.yaml": configMap + "z, namespace: default}\n"}, inputs: []krm.Input{input}, fails: "inputs/extra/z.yaml, document 1, line 1: ConfigMap default/z is there already, in a.yaml, document 1, line 1"},
		"Wrong": {reason: "An error in a file names it.", files: map[string]string{"sub/a.yaml": "a: {{ b }}\n"}, fails: "sub/a.yaml, line 1: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range tc.files {
				at := filepath.Join(dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"--dir=" + dir}
			if tc.noDir {
				args = []string{"--dir="}
			}
			data, err := krm.Encode(tc.inputs, nil)
			if err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			if err := plain.Command("v1").Run(args, func(string) string { return "default" }, bytes.NewReader(data), &stdout, &stderr); err != nil {
				t.Fatal(err)
			}
			out, err := krm.Decode(stdout.Bytes())
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
			failed := ""
			if len(out.Results) > 0 {
				failed = strings.ReplaceAll(out.Results[0].Message, dir, "DIR")
			}
			if !strings.HasPrefix(failed, tc.fails) || (tc.fails == "") != (failed == "") {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, failed, tc.fails)
			}
		})
	}
}
