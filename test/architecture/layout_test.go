package architecture_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
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
			t.Errorf("%s has %d lines, want at most %d: a main says what is put together, and leaves the rest to packages that can be tested", name, n, maxMain)
		}
	}
}

// shapeless are names that say nothing about what is inside, so that anything
// ends up there.
var shapeless = []string{"base", "common", "helper", "helpers", "misc", "util", "utils"}

func TestNamesSaySomething(t *testing.T) {
	for p, l := range load(t) {
		if !isOurs(short(p)) {
			continue
		}
		if slices.Contains(shapeless, l.Name) || slices.Contains(shapeless, path.Base(p)) {
			t.Errorf("%s is named %s, which says nothing: name it after what it does", short(p), l.Name)
		}
	}
}
