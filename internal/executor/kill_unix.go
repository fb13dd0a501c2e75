//go:build unix

package executor

import (
	"os"
	"syscall"
)

// kill ends a process.
func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

// killGroup ends a process and all of its group.
func killGroup(p *os.Process) error { return kill(-p.Pid) }
