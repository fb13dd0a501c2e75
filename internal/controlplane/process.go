package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Descriptors that every child inherits. The numbers follow from the order of
// exec.Cmd.ExtraFiles.
const (
	lifelineFD = 3
	lockFD     = 4

	// childMark is set in the environment of every child, so that a child
	// knows that it has a lifeline.
	childMark = "ARBOR_CHILD"

	// lastWords is the prefix of the last log line of a child, with the reason why it cannot run.
	lastWords = "fatal: "

	logLimit  = 16 << 20
	tailLines = 12
)

// A process is one running child.
type process struct {
	name     string
	cmd      *exec.Cmd
	lifeline *os.File
	log      string
	done     chan struct{}
	err      error // valid when done is closed
}

// startProcess runs this binary again with the given arguments.
func startProcess(h *home, name string, args []string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	log, err := openLog(h.file("logs", name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer theirs.Close()

	p := &process{name: name, lifeline: ours, log: log.Name(), done: make(chan struct{})}
	p.cmd = exec.Command(self, args...) //nolint:gosec,noctx // this very program with our own arguments; stop ends it, in its turn
	p.cmd.Env = append(os.Environ(), childMark+"="+name)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.ExtraFiles = []*os.File{theirs, h.children}
	// Ctrl-C in a terminal signals a whole process group. The children are stopped by us, in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		_ = ours.Close()

		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}

	go func() {
		p.err = p.cmd.Wait()
		_ = ours.Close()
		close(p.done)
	}()

	return p, nil
}

// outlives waits for the end of ctx or of the child, and reports whether the child still runs.
func (p *process) outlives(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-p.done:
		return false
	}
}

// stop asks the child to end and kills it when it has not by then.
func (p *process) stop(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// failure explains why the child ended: by the reason that it logged, or by the end of its log.
func (p *process) failure(what string) error {
	lines := tail(p.log)
	if n := len(lines); n > 0 && strings.HasPrefix(lines[n-1], lastWords) {
		return fmt.Errorf("%s %s: %s", p.name, what, strings.TrimPrefix(lines[n-1], lastWords))
	}
	cause := "it ended by itself"
	if p.err != nil {
		cause = p.err.Error()
	}

	return fmt.Errorf("%s %s: %s\nlast lines of %s:\n  %s", p.name, what, cause, p.log, strings.Join(lines, "\n  "))
}

// openLog appends to a log, which is truncated when it has grown large.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		_ = os.Rename(path, path+".1")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write log: %w", err)
	}

	return f, nil
}

// tail returns the last lines of a file that are not empty.
func tail(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	const window = 8 << 10
	if info, err := f.Stat(); err == nil && info.Size() > window {
		_, _ = f.Seek(-window, io.SeekEnd)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")

	return lines[max(0, len(lines)-tailLines):]
}

// IsChild reports whether this process was started by Up.
func IsChild() bool {
	return os.Getenv(childMark) != ""
}

// FollowParent makes a child end with its parent, and must be called first. When the parent ends,
// even by a crash or kill -9, the lifeline closes: the child then asks itself to stop and, if it
// does not, exits.
func FollowParent() {
	// The lifeline and the lock are for this process, not for its children.
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(lockFD)
	lifeline := os.NewFile(lifelineFD, "lifeline")
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		time.Sleep(lastBreath / 3)
		os.Exit(1)
	}()
}

// Die ends a child that cannot run, with words for the person who started it.
func Die(err error) {
	fmt.Fprintf(os.Stderr, "%s%s\n", lastWords, strings.ReplaceAll(err.Error(), "\n", " "))
	os.Exit(1)
}
