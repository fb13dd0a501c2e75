//go:build !unix

package root

import (
	"errors"
	"os/exec"
)

// replace is not possible on this system.
func replace(*exec.Cmd) error { return errors.ErrUnsupported }
