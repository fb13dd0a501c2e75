package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Dir is where the sandbox keeps files: a tmpfs that ends with it.
const Dir = "/run/arbor"

// covered are the directories that programs of a node write to, wherever they are told to:
// a layer in the tmpfs takes what they write.
var covered = []string{"/etc", "/opt", "/usr/libexec", "/var/lib", "/var/log"}

// initialize is PID 1: it prepares the namespaces, starts the tests, and reaps orphans
// until the tests have ended. It returns their exit code.
func initialize(name string) (int, error) {
	// A cgroup namespace belongs to a thread, and a process is in that of the thread that
	// started it.
	runtime.LockOSThread()
	cgroups, err := mounted()
	if err != nil {
		return 0, err
	}
	for _, h := range cgroups {
		if err := h.join(name); err != nil {
			return 0, err
		}
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return 0, fmt.Errorf("cannot make a cgroup namespace: %w", err)
	}
	if err := prepare(cgroups); err != nil {
		return 0, err
	}
	inside := self(roleInside, name)
	inside.Env = append(inside.Env, "TMPDIR="+filepath.Join(Dir, "tmp"))
	process, err := os.StartProcess(inside.Path, inside.Args, &os.ProcAttr{
		Env: inside.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 0, err
	}

	return reap(process.Pid)
}

// prepare makes the mounts and the network.
func prepare(cgroups []hierarchy) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	for _, m := range []struct{ kind, at, options string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"tmpfs", "/run", "mode=755"},
	} {
		if err := mount(m.kind, m.at, m.kind, m.options); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(Dir, "tmp"), 0o700); err != nil {
		return err
	}
	for _, dir := range covered {
		if err := cover(dir); err != nil {
			return err
		}
	}
	for _, name := range settings {
		if err := copySetting(name); err != nil {
			return err
		}
	}
	if err := mountCgroups(cgroups); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte("node")); err != nil {
		return fmt.Errorf("cannot set the host name: %w", err)
	}

	return Run("ip", "link", "set", "lo", "up")
}

// settings are settings of the kernel that a kubelet writes, and that belong to no namespace.
var settings = []string{
	"kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys", "kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom",
}

// kernel is where settings are.
const kernel = "/proc/sys/"

// copySetting puts a file of the tmpfs in the place of a setting: what is written there changes
// nothing on the machine.
func copySetting(name string) error {
	at := kernel + name
	value, err := os.ReadFile(at)
	if err != nil {
		return nil //nolint:nilerr // this kernel does not have it
	}
	file := filepath.Join(Dir, "settings", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, value, 0o644); err != nil {
		return err
	}
	if err := syscall.Mount(file, at, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("cannot mount a copy of %s: %w", at, err)
	}

	return nil
}

// cover takes all writes to a directory, if it exists, into the tmpfs.
func cover(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return nil //nolint:nilerr // programs make it in the layer of its parent, or cannot
	}
	layer := filepath.Join(Dir, "layers", strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"))
	upper, work := filepath.Join(layer, "upper"), filepath.Join(layer, "work")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}

	return mount("overlay", dir, "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work))
}

func mount(source, at, kind, options string) error {
	if err := syscall.Mount(source, at, kind, 0, options); err != nil {
		return fmt.Errorf("cannot mount %s on %s (%s): %w", kind, at, options, err)
	}

	return nil
}

// Run runs a program, whose output is part of the error.
func Run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput() //nolint:noctx // it ends soon
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}

	return nil
}

// reap waits for all children, and returns the exit code of one of them once that has ended.
func reap(of int) (int, error) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("cannot wait for the tests: %w", err)
		case pid == of && status.Exited():
			return status.ExitStatus(), nil
		case pid == of:
			return 0, fmt.Errorf("the process of the tests was killed: %s", status.Signal())
		}
	}
}
