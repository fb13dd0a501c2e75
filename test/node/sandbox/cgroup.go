package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// A hierarchy is one mounted tree of cgroups.
type hierarchy struct {
	// at is where it is mounted; kind is cgroup (v1) or cgroup2.
	at, kind string
	// options of its mount: the controllers of v1.
	options string
}

// hierarchies reads those that are mounted below /sys/fs/cgroup. Where v1 has the
// controllers, the tree of v2 next to it is left alone.
func hierarchies(mountinfo string) []hierarchy {
	var all []hierarchy
	for line := range strings.Lines(mountinfo) {
		before, after, found := strings.Cut(strings.TrimSpace(line), " - ")
		fields, super := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(super) < 3 || !strings.HasPrefix(fields[4], cgroupRoot) {
			continue
		}
		if kind := super[0]; kind == "cgroup" || kind == "cgroup2" {
			options := slices.DeleteFunc(strings.Split(super[2], ","), func(o string) bool { return o == "rw" || o == "ro" })
			all = append(all, hierarchy{at: fields[4], kind: kind, options: strings.Join(options, ",")})
		}
	}
	if slices.ContainsFunc(all, func(h hierarchy) bool { return h.kind == "cgroup" }) {
		all = slices.DeleteFunc(all, func(h hierarchy) bool { return h.kind == "cgroup2" })
	}

	return all
}

func mounted() ([]hierarchy, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	all := hierarchies(string(data))
	if len(all) == 0 {
		return nil, fmt.Errorf("no cgroups are mounted below %s", cgroupRoot)
	}

	return all, nil
}

// needed are the controllers without which a kubelet or runc does not start containers.
var needed = map[string][]string{
	"cgroup":  {"cpu", "cpuacct", "cpuset", "devices", "memory"},
	"cgroup2": {"cpu", "memory", "pids"},
}

// lacking returns an error if a kind of cgroups does not have all controllers that are needed.
func lacking(kind string, have []string) error {
	var missing []string
	for _, c := range needed[kind] {
		if !slices.Contains(have, c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}

	return fmt.Errorf("%s in %s lacks controllers: %s", kind, cgroupRoot, strings.Join(missing, ", "))
}

// controllers returns those of v1, which are options of mounts.
func controllers(all []hierarchy) []string {
	var have []string
	for _, h := range all {
		have = append(have, strings.Split(h.options, ",")...)
	}

	return have
}

// join makes a cgroup in a hierarchy and moves this process into it.
func (h hierarchy) join(name string) error {
	dir := filepath.Join(h.at, name)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot make a cgroup: %w", err)
	}
	// Processes can only enter a cpuset that has CPUs and memory.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(h.at, file))
		if h.kind != "cgroup" || err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, file), bytes.TrimSpace(value), 0o600); err != nil {
			return fmt.Errorf("cannot set %s: %w", file, err)
		}
	}

	return enter(dir)
}

// enter moves this process into a cgroup.
func enter(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o600); err != nil {
		return fmt.Errorf("cannot enter cgroup %s: %w", dir, err)
	}

	return nil
}

// mountCgroups mounts the hierarchies again, as a cgroup namespace shows them.
func mountCgroups(all []hierarchy) error {
	if all[0].kind == "cgroup2" {
		if err := mount(cgroupRoot, "cgroup2", ""); err != nil {
			return err
		}

		return delegate()
	}
	if err := lacking("cgroup", controllers(all)); err != nil {
		return err
	}
	if err := mount(cgroupRoot, "tmpfs", "mode=755"); err != nil {
		return err
	}
	for _, h := range all {
		if err := os.MkdirAll(h.at, 0o755); err != nil {
			return err
		}
		if err := mount(h.at, "cgroup", h.options); err != nil {
			return err
		}
	}

	return nil
}

// delegate lets children of the root of cgroup v2 use all controllers. Only a cgroup
// without processes can do so, hence this process moves down.
func delegate() error {
	lane := filepath.Join(cgroupRoot, "lane")
	if err := os.Mkdir(lane, 0o755); err != nil {
		return err
	}
	if err := enter(lane); err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if err != nil {
		return err
	}
	all := strings.Fields(string(list))
	if err := lacking("cgroup2", all); err != nil {
		return err
	}
	for _, c := range all {
		if err := os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+"+c), 0o600); err != nil {
			return fmt.Errorf("cannot delegate the cgroup controller %s: %w", c, err)
		}
	}

	return nil
}

// removeCgroups removes the cgroups of a sandbox, once their processes have ended.
func removeCgroups(name string, patience time.Duration) error {
	all, err := mounted()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for _, h := range all {
		for {
			err := removeTree(filepath.Join(h.at, name))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("cannot remove a cgroup: %w", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}

	return nil
}

// removeTree removes a cgroup and those below. The files in them are the kernel's.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("%s: %w", dir, err)
	}

	return nil
}
