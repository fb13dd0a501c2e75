package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process is a program under test, with its output.
type Process struct {
	cmd    *exec.Cmd
	output buffer
	done   chan struct{}
	err    error
}

// StartProcess starts a program in a process group of its own. It ends with this process.
func StartProcess(path string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(context.Background(), path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	// Directories of tests are not recorded in the home of the user.
	p.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(os.TempDir(), "arbor-test-state"))
	if dir := os.Getenv("ARBOR_COVERDIR"); dir != "" {
		// go test has a directory of its own for what the tests cover.
		p.cmd.Env = append(p.cmd.Env, "GOCOVERDIR="+dir)
	}
	if err := start(p.cmd); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", path, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		races.look(p.Output())
		close(p.done)
	}()

	return p, nil
}

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output is everything it has written so far.
func (p *Process) Output() string { return p.output.String() }

// routine matches lines that every start and every end of a program writes. They would hide the
// reason of a failed test.
var routine = regexp.MustCompile(`"(Starting|Stopping|Registering|Serving|Shutting|Shutdown|All workers finished|healthz check failed|shutting down server|starting server)`)

// Remarks is Output without the lines that every start and every end of the program writes.
func (p *Process) Remarks() string {
	lines := slices.Collect(strings.Lines(p.Output()))

	return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return (strings.Contains(line, `"level":"INFO"`) || strings.Contains(line, "level=INFO")) && routine.MatchString(line)
	}), "")
}

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode of a process that has ended.
func (p *Process) ExitCode() int {
	<-p.done

	return p.cmd.ProcessState.ExitCode()
}

// CPU is how much of it a process that has ended has used.
func (p *Process) CPU() time.Duration {
	<-p.done

	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Signal sends a signal, and ignores a process that has ended.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Stop asks it to end and waits; it reports how long that took.
func (p *Process) Stop() time.Duration {
	began := time.Now()
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		p.Kill()
	}

	return time.Since(began)
}

// Kill ends it at once.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// buffer is a bytes.Buffer that a process and a test can share.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.b.String()
}
