package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mark is the environment variable of all processes of a sandbox in these tests.
const mark = "SANDBOX_TEST"

func TestMain(m *testing.M) {
	if hurt := hurts[os.Getenv(hurtVariable)]; hurt != nil && os.Getenv(variable) == "" {
		if err := hurt(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	if os.Getenv(mark) != "" || os.Getenv(variable) != "" {
		os.Exit(Main(payload{}))
	}
	os.Exit(m.Run())
}

// panicSetting is a setting that litter writes, with a value that no other program writes.
const (
	panicSetting = kernel + "kernel/panic"
	littered     = "77"
)

// uncover has the payload write to the machine.
const uncover = "uncover"

// payload plays a node in a sandbox: it makes everything that a node could leave behind.
type payload struct{}

// Run returns the code that stdin asks for.
func (payload) Run() int {
	err := litter()
	fmt.Fprintf(os.Stdout, "ready %v\n", err)
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if line == uncover+"\n" {
		_ = syscall.Unmount("/var/lib", syscall.MNT_DETACH)

		return 0
	}
	code, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		select {} // until it is killed
	}

	return code
}

// litter makes things with the name of the sandbox, so that they can be found.
func litter() error {
	for _, args := range []string{"link add node0 type bridge", "link set node0 alias " + Name()} {
		if err := Run("ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	for _, dir := range covered {
		if !exists(dir) {
			continue
		}
		dir = filepath.Join(dir, Name())
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := mount(dir, "tmpfs", ""); err != nil {
			return err
		}
	}
	if err := os.WriteFile(panicSetting, []byte(littered), 0o600); err != nil {
		return err
	}
	all, err := mounted()
	if err != nil {
		return err
	}
	// A daemon, as the shim of a container is, in a cgroup of its own.
	daemon := exec.Command("sleep", "600") //nolint:noctx // it is killed
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		return err
	}
	for _, h := range all {
		pod := hierarchy{at: filepath.Join(h.at, "kubepods"), kind: h.kind}
		if err := os.MkdirAll(filepath.Join(pod.at, "pod1"), 0o755); err != nil {
			return err
		}
		if strings.HasSuffix(h.at, "cpuset") {
			continue // it would need CPUs first
		}
		if err := os.WriteFile(filepath.Join(pod.at, "pod1", "cgroup.procs"), []byte(strconv.Itoa(daemon.Process.Pid)), 0o600); err != nil {
			return err
		}
	}

	return nil
}

// again is this program, which runs the payload in a sandbox.
func again(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec,noctx // it is this program, and is killed
	cmd.Env = append(os.Environ(), mark+"="+t.Name())

	return cmd
}

// started starts a sandbox and waits until the payload is ready.
func started(t *testing.T) (outer *exec.Cmd, answer func(string)) {
	t.Helper()
	if missing := Missing(); missing != "" {
		if code := skip(missing); code != 0 {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	cmd := again(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready <nil>\n" {
		t.Fatalf("the sandbox is not ready: %q %v %s", line, err, &errs)
	}

	return cmd, func(text string) { fmt.Fprintln(in, text) }
}

// roles are the processes of a test, by role.
func roles(t *testing.T) map[string][]int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		environ := strings.Split(string(data), "\x00")
		if err != nil || !slices.Contains(environ, mark+"="+t.Name()) {
			continue
		}
		role := ""
		for _, v := range environ { // the last one counts
			if value, ok := strings.CutPrefix(v, variable+"="); ok {
				role = value
			}
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		all[role] = append(all[role], pid)
	}

	return all
}

// Nothing is left of a sandbox, whichever of its processes is killed.
func TestKilled(t *testing.T) {
	for _, role := range []string{"", roleInit, roleInside} {
		t.Run("role "+role, func(t *testing.T) {
			outer, _ := started(t)
			all := roles(t)
			if len(all[roleJanitor]) != 1 || len(all[""]) != 1 || len(all[roleInit]) != 1 || len(all[roleInside]) != 2 {
				t.Fatalf("the processes are %v, want one for each role, and the daemon", all)
			}
			if err := syscall.Kill(all[role][0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = outer.Wait()
			deadline := time.Now().Add(30 * time.Second)
			for {
				left := remains(t, fmt.Sprintf("arbor-node-%d", outer.Process.Pid))
				if len(left) == 0 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("still there: %s", strings.Join(left, ", "))
				}
				<-time.After(20 * time.Millisecond)
			}
		})
	}
}

// remains lists what is left of a sandbox.
func remains(t *testing.T, name string) []string {
	t.Helper()
	left, err := leftovers(name)
	if err != nil {
		t.Fatal(err)
	}
	for role, pids := range roles(t) {
		left = append(left, fmt.Sprintf("process %q %v", role, pids))
	}
	if value, _ := os.ReadFile(panicSetting); strings.TrimSpace(string(value)) == littered {
		left = append(left, "setting "+panicSetting)
	}

	return left
}

// The exit code of the tests is that of the sandbox, which leaves nothing behind.
func TestEnded(t *testing.T) {
	outer, answer := started(t)
	left, err := leftovers(fmt.Sprintf("arbor-node-%d", outer.Process.Pid))
	if seen := strings.Join(left, ", "); err != nil || !strings.Contains(seen, "cgroup /") || !strings.Contains(seen, "process ") {
		t.Errorf("while the sandbox runs, its cgroups and processes are not seen: %s, %v", seen, err)
	}
	answer("7")
	_ = outer.Wait()
	if code := outer.ProcessState.ExitCode(); code != 7 {
		t.Errorf("the exit code is %d, want 7", code)
	}
	if left := remains(t, fmt.Sprintf("arbor-node-%d", outer.Process.Pid)); len(left) > 0 {
		t.Errorf("left: %s", strings.Join(left, ", "))
	}
}

// What other programs of the machine make while a sandbox runs is not left by it.
func TestNeighbor(t *testing.T) {
	outer, answer := started(t)
	dir := filepath.Join(t.TempDir(), "containerd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mount(dir, "tmpfs", ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	answer("0")
	_ = outer.Wait()
	if code := outer.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d, want 0", code)
	}
}

// A sandbox whose programs could have written to the machine fails.
func TestUncovers(t *testing.T) {
	outer, answer := started(t)
	answer(uncover)
	_ = outer.Wait()
	if code := outer.ProcessState.ExitCode(); code != 1 {
		t.Errorf("the exit code is %d, want 1", code)
	}
}
