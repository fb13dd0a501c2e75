package executor_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/arbor-control/arbor/internal/executor"
)

// executes is set in the process that TestKillAbandoned starts and kills.
const executes = "ARBOR_TEST_EXECUTES"

// background starts a child in the group of the program, and one in a session of its own, and prints
// their numbers.
const background = `sleep 600 & echo $! > "$DIR/group.new"; mv "$DIR/group.new" "$DIR/group"
setsid sh -c 'echo $$ > "$DIR/session.new"; mv "$DIR/session.new" "$DIR/session"; exec sleep 600' & wait`

// TestKillAbandoned kills a process that runs a program: the kernel kills the program, and the next
// start kills the children of the program. Those of a process that is alive are left alone.
func TestKillAbandoned(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid")
	}
	if dir := os.Getenv(executes); dir != "" {
		_, err := (&executor.Process{}).Execute(t.Context(), shell("DIR="+dir+"; export DIR; "+background))
		t.Fatalf("the program has ended: %v", err)
	}
	dir := t.TempDir()
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillAbandoned$") //nolint:gosec // this very program
	owner.Env = append(os.Environ(), executes+"="+dir)
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	children := map[string]int{"group": 0, "session": 0}
	for name := range children {
		await(t, func() bool {
			data, err := os.ReadFile(filepath.Join(dir, name))
			children[name], _ = strconv.Atoi(strings.TrimSpace(string(data)))

			return err == nil
		})
		t.Cleanup(func() { _ = syscall.Kill(children[name], syscall.SIGKILL) })
	}
	executor.KillAbandoned()
	for name, pid := range children {
		if !runs(pid) {
			t.Errorf("the child %s of a process that is alive was killed", name)
		}
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it was killed
	for name, pid := range children {
		if !runs(pid) {
			t.Errorf("the child %s ends by itself: nothing is tested", name)
		}
	}
	if n := executor.KillAbandoned(); n < len(children) {
		t.Errorf("%d processes were killed", n)
	}
	for _, pid := range children {
		await(t, func() bool { return !runs(pid) })
	}
}

// runs reports whether a process exists and has not ended.
func runs(pid int) bool {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	stat, err := bufio.NewReader(file).ReadString('\n')

	return err == nil && !strings.Contains(stat, ") Z ")
}
