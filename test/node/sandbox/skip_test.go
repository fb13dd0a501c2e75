package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// hurtVariable is the environment variable that names what a machine lacks.
const hurtVariable = "SANDBOX_HURT"

// hurts take something from a machine, in a mount namespace of its own.
var hurts = map[string]func() error{
	"Cgroups": readOnlyCgroups, "Controllers": onlyCgroup2, "Unmounted": noCgroups, "Overlay": deepOverlay,
}

// readOnlyCgroups mounts all cgroups read-only, as containers have them.
func readOnlyCgroups() error {
	all, err := mounted()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := syscall.Mount("", h.at, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("cannot make %s read-only: %w", h.at, err)
		}
	}

	return nil
}

// noCgroups unmounts all cgroups.
func noCgroups() error {
	all, err := mounted()
	if err != nil {
		return err
	}
	for _, h := range append(all, hierarchy{at: filepath.Join(cgroupRoot, "unified")}, hierarchy{at: cgroupRoot}) {
		if err := syscall.Unmount(h.at, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("cannot unmount %s: %w", h.at, err)
		}
	}

	return nil
}

// errNotHybrid is the error of a machine on which v2 has the controllers.
var errNotHybrid = errors.New("cgroup v2 has the controllers of this machine")

// onlyCgroup2 mounts v2 alone, where v1 has the controllers.
func onlyCgroup2() error {
	all, err := mounted()
	if err != nil {
		return err
	}
	if all[0].kind != "cgroup" {
		return errNotHybrid
	}
	if err := noCgroups(); err != nil {
		return err
	}

	return syscall.Mount("cgroup2", cgroupRoot, "cgroup2", 0, "")
}

// deepOverlay covers a directory so often that it takes no further overlay.
func deepOverlay() error {
	dir, err := os.MkdirTemp("/run", "deep-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		return err
	}
	for n := range 3 {
		upper, work := filepath.Join(dir, fmt.Sprint("upper", n)), filepath.Join(dir, fmt.Sprint("work", n))
		if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
			return err
		}
		err := syscall.Mount("overlay", "/var/log", "overlay", 0, fmt.Sprintf("lowerdir=/var/log,upperdir=%s,workdir=%s", upper, work))
		if errors.Is(err, syscall.EINVAL) && n > 0 {
			return nil // it is as deep as the kernel allows
		}
		if err != nil {
			return fmt.Errorf("cannot cover /var/log: %w", err)
		}
	}

	return nil
}

// A machine that does not allow what a sandbox does is one that lacks something: the tests are
// skipped with one line, and nothing is left. With CI=true they fail, with the same line.
func TestSkips(t *testing.T) {
	cases := map[string]struct{ reason, want string }{
		"Cgroups":     {"Containers with CAP_SYS_ADMIN have read-only cgroups.", "read-only file system"},
		"Controllers": {"A kubelet cannot limit anything.", "cgroup2 in /sys/fs/cgroup lacks controllers: cpu, memory, pids"},
		"Unmounted":   {"A container may have none.", "no cgroups are mounted below /sys/fs/cgroup"},
		"Overlay":     {"The root of a container in a container takes no overlay.", "cannot mount overlay on /var/log: invalid argument"},
	}
	if missing := Missing(); missing != "" {
		t.Skip(missing)
	}
	for name, tc := range cases {
		for ci, code := range map[string]int{"": 0, "true": 1} {
			t.Run(name+ci, func(t *testing.T) {
				cmd := again(t)
				cmd.Env = append(cmd.Env, hurtVariable+"="+name, "CI="+ci)
				cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
				out, _ := cmd.CombinedOutput()
				text := strings.TrimSpace(string(out))
				if text == errNotHybrid.Error() {
					t.Skip(text)
				}
				if got := cmd.ProcessState.ExitCode(); got != code || strings.Contains(text, "\n") || !strings.Contains(text, "on a real node") || !strings.Contains(text, tc.want) {
					t.Errorf("%s\nexit code %d, want %d, and one line with %q:\n%s", tc.reason, got, code, tc.want, text)
				}
				if left := remains(t, fmt.Sprintf("arbor-node-%d-try", cmd.Process.Pid)); len(left) > 0 {
					t.Errorf("%s\nleft: %s", tc.reason, strings.Join(left, ", "))
				}
			})
		}
	}
}
