package docs_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// commandTime is how long a command of a page may take.
const commandTime = 90 * time.Second

// A shell is a bash that keeps its variables and its folder from command to command.
type shell struct {
	in     io.WriteCloser
	lines  chan string
	marker string
	count  int
}

func newShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	cmd := exec.Command("bash", "--norc", "--noprofile") //nolint:noctx // it ends with its test: see below
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &shell{in: in, lines: make(chan string, 1024), marker: "--- end of command"}
	go func() {
		defer close(s.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				s.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})

	return s
}

// run executes a command, and returns what it printed and its exit code.
func (s *shell) run(text string) (output string, code int, err error) {
	s.count++
	marker := fmt.Sprintf("%s %d:", s.marker, s.count)
	if _, err := fmt.Fprintf(s.in, "{ %s\n} 2>&1 </dev/null\nprintf '\\n%s %%d\\n' $?\n", text, marker); err != nil {
		return "", 0, fmt.Errorf("the shell ended: %w", err)
	}
	var b strings.Builder
	for timeout := time.After(commandTime); ; {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return b.String(), 0, fmt.Errorf("the shell ended after %q", b.String())
			}
			if end, isEnd := strings.CutPrefix(line, marker); isEnd {
				code, err := strconv.Atoi(strings.TrimSpace(end))

				return strings.TrimSuffix(b.String(), "\n"), code, err
			}
			b.WriteString(line)
		case <-timeout:
			return b.String(), 0, fmt.Errorf("it did not end within %s, and printed %q", commandTime, b.String())
		}
	}
}
