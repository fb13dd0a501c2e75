package console_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/arbor-control/arbor/test/cluster"
)

// counting stands for the full arbor: it counts the signals that it gets, and ends in order.
const counting = `#!/bin/sh
trap 'count=$((count + 1))' INT
echo "started: $*"
while [ "${count:-0}" -eq 0 ]; do sleep 0.05; done
sleep 0.5
echo "signals: $count"
exit 7
`

// kubectl-arbor becomes the full arbor that is next to it: that gets each signal once, and its exit
// code is the one of the command.
func TestPluginRunsArbor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plugin := copyOf(t, filepath.Join(cluster.Root(), "bin", "kubectl-arbor"), dir)
	if err := os.WriteFile(filepath.Join(dir, "arbor"), []byte(counting), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), plugin, "up", "--nodes=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }).Stop()
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "started: up --nodes=3\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	// As a terminal does, to the whole group.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait()
	if got := strings.TrimSpace(string(rest)); got != "signals: 1" || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("got %q and exit code %d", got, cmd.ProcessState.ExitCode())
	}
}

// Without a full arbor, and with a folder or a link of that name, it names what is missing.
func TestPluginWithoutArbor(t *testing.T) {
	t.Parallel()
	for reason, prepare := range map[string]func(dir, plugin string) error{
		"there is nothing of that name": func(string, string) error { return nil },
		"a folder is not a program":     func(dir, _ string) error { return os.Mkdir(filepath.Join(dir, "arbor"), 0o700) },
		"a link to the plugin is not the full arbor": func(dir, plugin string) error {
			return os.Symlink(plugin, filepath.Join(dir, "arbor"))
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plugin := copyOf(t, filepath.Join(cluster.Root(), "bin", "kubectl-arbor"), dir)
			if err := prepare(dir, plugin); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), plugin, "groups", "explain", "x")
			cmd.Env = []string{"PATH=" + dir}
			var errs bytes.Buffer
			cmd.Stderr = &errs
			_ = cmd.Run()
			if !strings.Contains(errs.String(), "needs the full arbor") || cmd.ProcessState.ExitCode() != 2 {
				t.Errorf("got %q and exit code %d", errs.String(), cmd.ProcessState.ExitCode())
			}
		})
	}
}

func copyOf(t *testing.T, file, dir string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(target, data, 0o700); err != nil {
		t.Fatal(err)
	}

	return target
}
