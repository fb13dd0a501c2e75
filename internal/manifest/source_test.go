package manifest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder creates files in a temporary folder and makes it the working directory.
func folder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())

	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSources(t *testing.T) {
	folder(t, map[string]string{
		"d/b.yaml": "", "d/a.yml": "", "d/sub/c.json": "", "d/x.txt": "", "d/.git/h.yaml": "", "d/.hidden.yaml": "",
		"one.txt": "", "empty/x.txt": "", ".dot/in.yaml": "",
	})

	for link, to := range map[string]string{"d/link.yaml": "b.yaml", "d/dangling.yaml": "nowhere", "d/folder.yaml": "sub"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}

	tests := map[string]struct {
		reason string
		paths  []string
		want   []string
	}{
		"File":    {reason: "a file is read whatever its name", paths: []string{"one.txt"}, want: []string{"one.txt"}},
		"Folder":  {reason: "a folder is searched in sorted order, hidden folders and links to folders excepted", paths: []string{"d"}, want: []string{"d/.hidden.yaml", "d/a.yml", "d/b.yaml", "d/dangling.yaml", "d/link.yaml", "d/sub/c.json"}},
		"Hidden":  {reason: "a hidden folder that is named is meant", paths: []string{".dot"}, want: []string{".dot/in.yaml"}},
		"Twice":   {reason: "nothing is read twice", paths: []string{"d/a.yml", "./d/a.yml", "-", "-", "d/sub"}, want: []string{"d/a.yml", "<stdin>", "d/sub/c.json"}},
		"Missing": {reason: "what cannot be read is still an input", paths: []string{"nope", "empty"}, want: []string{"nope", "empty"}},
	}

	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range Sources(tc.paths, strings.NewReader("")) {
				got = append(got, s.Name)
			}

			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEach(t *testing.T) {
	folder(t, map[string]string{"a.yaml": "kind: A", "b.yaml": "kind: B\n---\n}", "e/x": ""})

	sources := Sources([]string{"b.yaml", "nope", "-", "a.yaml", "e"}, strings.NewReader("kind: S"))

	got, err := Each(t.Context(), sources, func(f File) []string {
		return append([]string{f.Name}, summary(f)...)
	})
	if err != nil {
		t.Fatal(err)
	}

	want := [][]string{
		{"b.yaml", "1: B ", "3! invalid YAML: did not find expected node content"},
		{"nope", "0! cannot read: no such file or directory"},
		{"<stdin>", "1: S "},
		{"a.yaml", "1: A "},
		{"e", "0! cannot read: no .yaml, .yml or .json files in this folder"},
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results come in the order of the sources (-want +got):\n%s", diff)
	}
}

// TestEachStops ends the wait for an input that never comes.
func TestEachStops(t *testing.T) {
	stdin, silent := io.Pipe()
	defer silent.Close()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := Each(ctx, Sources([]string{"-"}, stdin), func(f File) File { return f }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestErrorUnwraps(t *testing.T) {
	f := Sources([]string{filepath.Join(t.TempDir(), "nope")}, nil)[0].File()
	if e := f.Errors[0]; !e.Unreadable || !errors.Is(e, fs.ErrNotExist) {
		t.Errorf("got %+v, want an unreadable input whose cause can be told", e)
	}
}
