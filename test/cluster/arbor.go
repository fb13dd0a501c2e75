package cluster

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Arbor runs the command line against this control plane.
func (u *Up) Arbor(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	binary, err := Binary("arbor", "ARBOR")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.Kubeconfig, "LC_ALL=C.UTF-8")
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}

	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
