package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultMaxOutput is how much a program may write.
	DefaultMaxOutput = 10 << 20

	// tail is how much of standard error is kept.
	tail = 4 << 10

	// drain is how long the pipes of a program may be held open by what it left
	// behind.
	drain = time.Second
)

// A Process runs programs on this machine. Each has a process group of its own,
// which is ended as a whole: what a script has started ends with it. Processes that leave
// the group are found by a variable in their environment.
type Process struct {
	// MaxOutput is how many bytes a program may write, DefaultMaxOutput if zero.
	MaxOutput int
	// Inherit hands on the whole environment of this process. It is for containers,
	// where the image has made it.
	Inherit bool
	// Cgroup is where the cgroups of the container are mounted that this process is in, to
	// find out why a program was killed. Empty: it is in none.
	Cgroup string
	// Log gets what programs write to standard error, as they write it. Nil for nowhere.
	Log io.Writer
}

// errTooLarge is why a program was ended that writes too much.
var errTooLarge = errors.New("it wrote too much")

// Execute runs the command of a job. The program gets the variables of the job
// and, unless it inherits all of this process, PATH and HOME only.
func (p *Process) Execute(ctx context.Context, job Job) (Result, error) {
	if len(job.Command) == 0 {
		return Result{}, errors.New("cannot run the synthesizer: it has no command")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	limit := p.MaxOutput
	if limit == 0 {
		limit = DefaultMaxOutput
	}
	stdout := &limited{most: limit, full: func() { cancel(errTooLarge) }}
	stderr := &last{}
	cmd := exec.CommandContext(ctx, job.Command[0], job.Command[1:]...) //nolint:gosec // that is what it is for, and why it is off by default
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job.Input), stdout, stderr
	if p.Log != nil {
		cmd.Stderr = io.MultiWriter(stderr, p.Log)
	}
	marker := newExecution()
	cmd.Env = append(p.environ(job), marker)
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = drain

	kills := memoryKills(p.Cgroup)
	err := run(cmd)
	killMarked(marker)

	return Result{Output: stdout.buffer.Bytes(), Log: stderr.String()}, p.explain(ctx, cmd, err, limit, kills)
}

// run runs a command on a thread that lives as long as the command does: the
// kernel ends it with the thread that started it, so that it does not outlive a
// manager that was killed.
func run(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Run()
		if cmd.Process != nil {
			// Processes that it left in the background end too.
			_ = killGroup(cmd.Process)
		}
		done <- err
	}()

	return <-done
}

// explain describes why a program failed.
func (p *Process) explain(ctx context.Context, cmd *exec.Cmd, err error, limit int, kills int64) error {
	name := cmd.Args[0]
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTooLarge):
		return fmt.Errorf("cannot use what %s wrote: it is larger than %d MiB", name, limit>>20)
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success():
		return nil
	case errors.Is(cause, context.DeadlineExceeded):
		return fmt.Errorf("%s did not end in time and was killed", name)
	case cause != nil:
		return fmt.Errorf("%s was killed: %w", name, cause)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s failed: %w", name, p.explainKill(exit, kills))
	}

	return fmt.Errorf("cannot run %s: %w", name, err)
}

func (p *Process) environ(job Job) []string {
	var env []string
	if p.Inherit {
		env = os.Environ()
		// The user of the container has no home in most images, which is / then and cannot
		// be written to.
		if home := os.Getenv("HOME"); home == "" || home == "/" {
			env = append(env, "HOME="+os.TempDir())
		}
	}
	for _, e := range job.Environment() {
		if !strings.ContainsRune(e.Name, '=') {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	if p.Inherit {
		return env
	}
	// Of two of one name, the last counts.
	for _, name := range []string{"PATH", "HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}

	return env
}

// limited keeps what is written up to a limit, and notes when there is more.
type limited struct {
	most   int
	full   func()
	buffer bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	if l.buffer.Len()+len(p) > l.most {
		l.full()

		return 0, errTooLarge
	}

	return l.buffer.Write(p)
}

// last keeps the end of what is written.
type last struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

func (l *last) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p...)
	if n := len(l.kept) - tail; n > 0 {
		l.kept, l.cut = append([]byte(nil), l.kept[n:]...), true
	}

	return len(p), nil
}

// String is the end as text, from the beginning of a line if that is cut.
func (l *last) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.kept
	if i := bytes.IndexByte(text, '\n'); l.cut && i >= 0 && i < len(text)-1 {
		text = text[i+1:]
	}

	return strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
}
