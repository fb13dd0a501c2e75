package executor

import "syscall"

// attributes give a program a process group of its own, and have the kernel end it with the
// thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
