package command

import "testing"

// TestProgram starts the program by its names.
func TestProgram(t *testing.T) {
	for path, want := range map[string]string{
		"arbor": "arbor", "/usr/bin/arbor": "arbor", "./kubectl-arbor": "kubectl arbor", "kubectl-arbor.exe": "kubectl arbor", "groups.test": "arbor",
	} {
		if got := programOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
