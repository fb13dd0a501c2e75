package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// patience is how long the processes of a sandbox may need to end once it is killed.
const patience = time.Minute

// A janitor is the process that removes the cgroups of a sandbox: the only thing that the
// kernel keeps when the last process has ended.
type janitor struct {
	cmd      *exec.Cmd
	lifeline *os.File
}

// startJanitor starts one that works when this process ends, however it ends: it waits for
// the end of a pipe that only this process holds. It is in a session of its own, so that
// Ctrl-C does not reach it, and it holds no output that the go command waits for.
func startJanitor(name string) (*janitor, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := self(roleJanitor, name)
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the janitor: %w", err), write.Close())
	}

	return &janitor{cmd: cmd, lifeline: write}, nil
}

// finish has it work now.
func (j *janitor) finish() error {
	if err := j.lifeline.Close(); err != nil {
		return err
	}
	if err := j.cmd.Wait(); err != nil {
		return fmt.Errorf("cannot remove the cgroups of the sandbox: %w", err)
	}

	return nil
}

// tidy is what the janitor does.
func tidy(name string) error {
	_, _ = io.Copy(io.Discard, os.Stdin)

	return removeCgroups(name, patience)
}
