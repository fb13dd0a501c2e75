package cluster

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// starts is set in the environment of a process that starts a program and waits: its
// value is a directory that it removes when it is killed.
const starts = "ARBOR_TEST_STARTS"

func TestMain(m *testing.M) {
	dir := os.Getenv(starts)
	if dir == "" {
		os.Exit(m.Run())
	}
	cleanUpWhenKilled(func() { _ = os.RemoveAll(dir) })
	p, err := StartProcess("sleep", "1000")
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, os.Getpid(), p.PID())
	select {}
}

// TestKilled kills a process in several ways, and looks for what it has started.
func TestKilled(t *testing.T) {
	cases := map[string]struct {
		reason string
		kill   func(parent, self int)
		left   bool
	}{
		"Kill": {
			reason: "A process that is killed cannot clean up: the kernel ends what it has started.",
			kill:   func(_, self int) { _ = syscall.Kill(self, syscall.SIGKILL) },
			left:   true,
		},
		"Terminate": {
			reason: "A process that is asked to end removes its directory.",
			kill:   func(_, self int) { _ = syscall.Kill(self, syscall.SIGTERM) },
		},
		"KillGo": {
			reason: "A test without the go command that started it ends, too.",
			kill:   func(parent, _ int) { _ = syscall.Kill(parent, syscall.SIGKILL) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			fail(t, os.Mkdir(dir, 0o700))
			parent, self, child := startsOne(t, dir)
			tc.kill(parent, self)
			for _, pid := range []int{self, child} {
				Eventually(t, fmt.Sprintf("process %d is gone", pid), func() error {
					if isAlive(pid) {
						return fmt.Errorf("%s: it runs", tc.reason)
					}

					return nil
				})
			}
			if _, err := os.Stat(dir); (err == nil) != tc.left {
				t.Errorf("%s\nthe directory is left: %t (%v)", tc.reason, err == nil, err)
			}
		})
	}
}

// startsOne runs this test in a shell that is called go, and returns the processes: the
// shell, the test, and what the test has started.
func startsOne(t *testing.T, dir string) (shell, self, child int) {
	t.Helper()
	program, err := os.ReadFile("/bin/sh")
	fail(t, err)
	path := filepath.Join(t.TempDir(), "go")
	fail(t, os.WriteFile(path, program, 0o700))
	cmd := exec.CommandContext(t.Context(), path, "-c", `"$0" & wait`, os.Args[0]) //nolint:gosec // this very test
	cmd.Env = append(os.Environ(), starts+"="+dir)
	out, err := cmd.StdoutPipe()
	fail(t, err)
	fail(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	fail(t, err)
	_, err = fmt.Sscan(line, &self, &child)
	fail(t, err)
	t.Cleanup(func() {
		_ = syscall.Kill(self, syscall.SIGKILL)
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	return cmd.Process.Pid, self, child
}

// isAlive reports whether a process runs. One that nothing waits for is a zombie.
func isAlive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))

	return err == nil && !strings.Contains(string(status), "State:\tZ")
}

func fail(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
