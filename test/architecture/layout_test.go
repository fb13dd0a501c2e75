package architecture

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxMain is how long a main may be: flags, one call, an exit code.
const maxMain = 60

func TestMainsAreShort(t *testing.T) {
	mains, err := filepath.Glob(filepath.Join(root, "cmd", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if len(mains) < 2 {
		t.Fatalf("found %d mains, want at least those of arbor and arbor-manager", len(mains))
	}
	for _, name := range mains {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(data, []byte("\n")); n > maxMain {
			t.Errorf("%s has %d lines, want at most %d: a main only assembles packages, which can be tested", name, n, maxMain)
		}
	}
}

// Limits that keep a package one idea, and a file one page of it.
const maxFiles, maxLines = 20, 400

func TestSizes(t *testing.T) {
	files := map[string]int{}
	for _, dir := range []string{"api", "bench", "cmd", "engine", "internal", "test", "tools", "synthesizers"} {
		tree := os.DirFS(filepath.Join(root, dir))
		err := fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(path.Base(name), "zz_generated") {
				return err
			}
			files[path.Join(dir, path.Dir(name))]++
			data, err := fs.ReadFile(tree, name)
			if n := bytes.Count(data, []byte("\n")); n > maxLines {
				t.Errorf("%s has %d lines, want at most %d: split it", path.Join(dir, name), n, maxLines)
			}

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, n := range files {
		if n > maxFiles {
			t.Errorf("%s has %d files without tests, want at most %d: split the package", dir, n, maxFiles)
		}
	}
}

// shapeless are names that do not describe the contents, so that anything ends up there.
var shapeless = []string{"base", "common", "helper", "helpers", "misc", "util", "utils"}

func TestNamesSaySomething(t *testing.T) {
	for p, l := range load(t) {
		if !isOurs(short(p)) {
			continue
		}
		if slices.Contains(shapeless, l.Name) || slices.Contains(shapeless, path.Base(p)) {
			t.Errorf("%s is named %s, which describes nothing: name it after what it does", short(p), l.Name)
		}
	}
}

// TestControllersArePatient : a controller that is not made of kube.Patient takes
// every race that it loses for an error.
func TestControllersArePatient(t *testing.T) {
	controllers := 0
	all := os.DirFS(filepath.Join(root, "internal"))
	err := fs.WalkDir(all, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".go" {
			return err
		}
		data, err := fs.ReadFile(all, name)
		made, patient := bytes.Count(data, []byte("NewControllerManagedBy(")), bytes.Count(data, []byte("Complete(kube.Patient("))
		if made != patient {
			t.Errorf("internal/%s makes %d controllers, and %d of them with Complete(kube.Patient(…)): use it for all", name, made, patient)
		}
		controllers += made

		return err
	})
	if err != nil || controllers < 10 {
		t.Fatalf("found %d controllers, want at least 10 (%v)", controllers, err)
	}
}
