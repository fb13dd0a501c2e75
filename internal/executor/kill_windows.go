package executor

import (
	"os"
	"syscall"
)

// kill ends a process.
func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}

	return p.Kill()
}

// killGroup ends a process. Windows has no process groups, so what it has started remains.
func killGroup(p *os.Process) error { return p.Kill() }

// attributes are none on Windows.
func attributes() *syscall.SysProcAttr { return nil }
