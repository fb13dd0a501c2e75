package sandbox

import (
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

// machine is what Missing looks at.
type machine struct {
	os          string
	uid         int
	filesystems string
	namespaces  func() error
	exists      func(path string) bool
	inPath      func(name string) bool
}

// Missing returns, in one line, the first thing that a sandbox needs and this machine does
// not have. It is empty when everything is there.
func Missing(programs ...Program) string {
	filesystems, _ := os.ReadFile("/proc/filesystems")

	return machine{
		os: runtime.GOOS, uid: os.Getuid(), filesystems: string(filesystems), namespaces: tryNamespaces,
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
	for _, kind := range []string{"overlay", "tmpfs"} {
		if !slices.Contains(fields, kind) {
			return fmt.Sprintf("they need the file system %s, which is not in /proc/filesystems (modprobe %s)", kind, kind)
		}
	}
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
	if err := m.namespaces(); err != nil {
		return fmt.Sprintf("they need namespaces of their own (mount, net, pid, uts, ipc), and the kernel does not allow them: %v", err)
	}

	return ""
}

// tryNamespaces runs a process that ends at once in new namespaces.
func tryNamespaces() error {
	cmd := self(roleTry, "")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}

	return cmd.Run()
}
