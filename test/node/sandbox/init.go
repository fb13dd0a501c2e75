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

// Name returns the name of the sandbox that this process is in. It is that of its cgroups, the
// source of its mounts and the alias of its interface, so that all of them can be told from
// those of other programs.
func Name() string { return os.Getenv(nameVariable) }

// Dir returns the directory in which the sandbox keeps files: in a tmpfs that ends with it.
func Dir() string { return "/run/" + Name() }

// covered are the directories that programs of a node write to, whatever their configuration:
// a layer in the tmpfs takes what they write.
var covered = []string{"/etc", "/opt", "/usr/libexec", "/var/lib", "/var/log"}

// initialize is PID 1: it prepares the namespaces, starts the tests, and reaps orphans
// until the tests have ended. It returns their exit code.
func initialize(name string) (int, error) {
	runtime.LockOSThread()
	if err := settle(name); err != nil {
		return 0, err
	}
	inside := self(roleInside, name)
	inside.Env = append(inside.Env, "TMPDIR="+filepath.Join(Dir(), "tmp"))
	process, err := os.StartProcess(inside.Path, inside.Args, &os.ProcAttr{
		Env: inside.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 0, err
	}

	code, err := reap(process.Pid)
	if err != nil {
		return code, err
	}

	return code, checkCovered(name)
}

// settle joins cgroups and makes mounts and network of a sandbox. The caller locks its thread:
// a cgroup namespace belongs to a thread, and a process is in that of the thread that started it.
func settle(name string) error {
	cgroups, err := mounted()
	if err != nil {
		return err
	}
	for _, h := range cgroups {
		if err := h.join(name); err != nil {
			return err
		}
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cannot make a cgroup namespace: %w", err)
	}

	return prepare(cgroups)
}

// rehearse does everything that a sandbox does before it starts the tests, and makes a cgroup as
// a container has one. All of it ends with this process, except for the cgroups.
func rehearse(name string) error {
	runtime.LockOSThread()
	if err := settle(name); err != nil {
		return err
	}
	cgroups, err := mounted()
	if err != nil {
		return err
	}
	for _, h := range cgroups {
		if err := os.MkdirAll(filepath.Join(h.at, "kubepods", "pod"), 0o755); err != nil {
			return fmt.Errorf("cannot make a cgroup in a cgroup: %w", err)
		}
	}

	return nil
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
		if err := mount(m.at, m.kind, m.options); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(Dir(), "tmp"), 0o700); err != nil {
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
	file := filepath.Join(Dir(), "settings", name)
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
	layer := filepath.Join(Dir(), "layers", strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"))
	upper, work := filepath.Join(layer, "upper"), filepath.Join(layer, "work")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}

	return mount(dir, "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work))
}

// mount mounts a file system. Its source is the name of the sandbox.
func mount(at, kind, options string) error {
	err := syscall.Mount(Name(), at, kind, 0, options)
	switch {
	case errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("cannot mount %s on %s: the kernel does not have this file system (modprobe %s)", kind, at, kind)
	case err != nil:
		return fmt.Errorf("cannot mount %s on %s: %w", kind, at, err)
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
