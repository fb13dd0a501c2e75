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

// TestTyped has a text with a hint.
func TestTyped(t *testing.T) {
	const text = "see arbor compositions show web, or kubectl get; arbor is not installed"
	if got := typed(text, "arbor"); got != text {
		t.Errorf("%q is changed", got)
	}
	if got, want := typed(text, Plugin), "see kubectl arbor compositions show web, or kubectl get; arbor is not installed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
