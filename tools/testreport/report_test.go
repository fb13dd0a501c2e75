package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		files map[string]string
		ok    bool
		want  []string // in this order
		not   []string
	}{
		"a package that passes is one line, without what its tests log": {
			files: map[string]string{"a/a_test.go": `package a
import "testing"
func TestA(t *testing.T) { t.Log("quiet") }`},
			ok:   true,
			want: []string{"ok  \texample.com/m/a", "1 packages", "example.com/m/a", "The slowest of 1 tests", "example.com/m/a TestA"},
			not:  []string{"quiet", "Failed:", "PASS"},
		},
		"the message of a failed test comes again at the end, without its log": {
			files: map[string]string{"a/a_test.go": `package a
import ("testing"; "fmt"; "strings")
func TestA(t *testing.T) {
	t.Cleanup(func() { fmt.Print(strings.Repeat("I0102 a long log\n", 5000)) })
	t.Fatalf("three of four gangs are whole:\n%s", "the fourth waits")
}
func TestB(t *testing.T) { t.Log("quiet") }`},
			want: []string{"I0102 a long log", "--- FAIL: TestA", "Failed:", "example.com/m/a TestA", "a_test.go:5: three of four gangs are whole:", "the fourth waits"},
			not:  []string{"quiet"},
		},
		"of a subtest that failed, the subtest and its message": {
			files: map[string]string{"a/a_test.go": `package a
import "testing"
func TestA(t *testing.T) { t.Run("inner", func(t *testing.T) { t.Error("why") }) }`},
			want: []string{"Failed:", "TestA/inner", "a_test.go:3: why"},
		},
		"a package that does not compile": {
			files: map[string]string{"a/a_test.go": "package a\nvar x int = \"text\"\n"},
			want:  []string{"cannot use", "Failed:", "example.com/m/a"},
		},
		"a panic": {
			files: map[string]string{"a/a_test.go": `package a
import "testing"
func TestA(t *testing.T) { panic("broken") }`},
			want: []string{"panic: broken", "Failed:", "TestA", "panic: broken"},
		},
		"a process that ends by itself fails its package": {
			files: map[string]string{"a/a_test.go": `package a
import ("testing"; "os")
func TestA(t *testing.T) { os.Exit(3) }`},
			want: []string{"Failed:", "example.com/m/a"},
		},
		"one package fails and the other passes": {
			files: map[string]string{
				"a/a_test.go": "package a\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Error(\"why\") }",
				"b/b_test.go": "package b\nimport \"testing\"\nfunc TestB(t *testing.T) {}",
			},
			want: []string{"ok  \texample.com/m/b", "2 packages", "Failed:", "example.com/m/a TestA"},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			ok, out := reportOf(t, c.files)
			if ok != c.ok {
				t.Errorf("passed is %v, want %v, in:\n%.3000s", ok, c.ok, out)
			}
			rest := out
			for _, text := range c.want {
				_, after, found := strings.Cut(rest, text)
				if !found {
					t.Fatalf("no %q after what comes before it, in:\n%.3000s", text, out)
				}
				rest = after
			}
			for _, text := range c.not {
				if strings.Contains(out, text) {
					t.Errorf("there is %q in:\n%.3000s", text, out)
				}
			}
		})
	}
}

// reportOf runs the real go command on a module with these files.
func reportOf(t *testing.T, files map[string]string) (bool, string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	events, _ := cmd.Output() // go test fails when a test fails
	var out strings.Builder
	ok, err := run(strings.NewReader(string(events)), &out)
	if err != nil {
		t.Fatal(err)
	}

	return ok, out.String()
}

// Events that end early, as when the go command is killed, are no success.
func TestEarlyEnd(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	ok, err := run(strings.NewReader(`{"Action":"start","Package":"p"}`+"\n"+`{"Action":"output","Package":"p","Output":"begun\n"}`), &out)
	if err != nil || ok || !strings.Contains(out.String(), "Package p did not end") {
		t.Errorf("got %v, %v and %q", ok, err, out.String())
	}
}

// A line that is no event is shown as it is. Without any package, nothing was tested.
func TestForeignLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	ok, err := run(strings.NewReader("go: no such tool \"cover\"\n"), &out)
	if err != nil || ok || !strings.Contains(out.String(), "no such tool") {
		t.Errorf("got %v, %v and %q", ok, err, out.String())
	}
}
