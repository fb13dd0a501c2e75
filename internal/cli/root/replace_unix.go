//go:build unix

package root

import (
	"os"
	"os/exec"
	"syscall"
)

// replace runs a program instead of this one, with its terminal and signals. It returns only if
// that fails.
func replace(cmd *exec.Cmd) error {
	return syscall.Exec(cmd.Path, cmd.Args, os.Environ()) //nolint:gosec // the user has given both
}
