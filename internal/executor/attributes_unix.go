//go:build unix && !linux

package executor

import "syscall"

// attributes give a program a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
