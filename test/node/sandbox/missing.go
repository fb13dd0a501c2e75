package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// A Program is a file that the tests need.
type Program struct {
	// Path of the file, and the command that Makes it.
	Path, Makes string
}

// machine is what Missing checks.
type machine struct {
	os          string
	uid         int
	filesystems string
	try         func() error
	exists      func(path string) bool
	inPath      func(name string) bool
}

// Missing returns, in one line, the first thing that a sandbox needs and this machine does
// not have. It is empty when everything is there.
func Missing(programs ...Program) string {
	filesystems, _ := os.ReadFile("/proc/filesystems")

	return machine{
		os: runtime.GOOS, uid: os.Getuid(), filesystems: string(filesystems), try: try,
		exists: exists, inPath: inPath,
	}.missing(programs)
}

func exists(path string) bool {
	_, err := os.Stat(path)

	return err == nil
}

func inPath(name string) bool {
	_, err := exec.LookPath(name)

	return err == nil
}

func (m machine) missing(programs []Program) string {
	switch {
	case m.os != "linux":
		return fmt.Sprintf("they need Linux, and this is %s", m.os)
	case m.uid != 0:
		return fmt.Sprintf("they need root, and this is user %d", m.uid)
	}
	fields := strings.Fields(m.filesystems)
	if !slices.Contains(fields, "cgroup") && !slices.Contains(fields, "cgroup2") {
		return "they need cgroups, and neither cgroup nor cgroup2 is in /proc/filesystems"
	}
	if !m.inPath("ip") {
		return "they need the program ip (Debian: apt-get install iproute2)"
	}
	for _, p := range programs {
		if !m.exists(p.Path) {
			return fmt.Sprintf("they need %s (%s)", p.Path, p.Makes)
		}
	}
	if err := m.try(); err != nil {
		return fmt.Sprintf("they need namespaces, mounts and cgroups of their own, and this machine does not allow them: %v", err)
	}

	return ""
}

// try starts a sandbox without tests. A list of what the kernel has is not enough: a container
// may have cgroups that are read-only, or a file system that takes no overlay. The mount of an
// overlay loads its module, too.
func try() error {
	// The kernel kills the process when this thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	name := fmt.Sprintf("arbor-node-%d-try", os.Getpid())
	janitor, err := startJanitor(name)
	if err != nil {
		return err
	}
	cmd := self(roleTry, name)
	var output bytes.Buffer
	cmd.Stderr = &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if text := strings.TrimSpace(output.String()); err != nil && text != "" {
		err = errors.New(strings.TrimPrefix(text, prefix))
	}
	removed := janitor.finish()
	if err != nil {
		return err // its cause is that of removed, too
	}

	return removed
}
