package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// leftovers lists what is left of a sandbox on this machine. Everything counts that has the
// name of the sandbox, and nothing else: other programs make mounts, interfaces and files at
// the same time.
func leftovers(name string) ([]string, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	cgroups, err := mounted()
	if err != nil {
		return nil, err
	}
	var left []string
	for _, at := range mountsOf(string(mountinfo), name) {
		left = append(left, "mount "+at)
	}
	for _, h := range cgroups {
		left = append(left, existing("cgroup", filepath.Join(h.at, name))...)
	}
	for _, dir := range append([]string{"/run"}, covered...) {
		left = append(left, existing("directory", filepath.Join(dir, name))...)
	}
	for what, pattern := range map[string]string{"interface": "/sys/class/net/*/ifalias", "process": "/proc/[0-9]*/cgroup"} {
		found, err := holders(pattern, name)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			left = append(left, what+" "+f)
		}
	}
	slices.Sort(left)

	return left, nil
}

// existing describes a directory, if it exists.
func existing(what, dir string) []string {
	if !exists(dir) {
		return nil
	}

	return []string{what + " " + dir}
}

// holders returns the names of the directories of all files of a pattern that mention a sandbox.
func holders(pattern, name string) ([]string, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && mentions(string(text), name) { // a process may have ended
			all = append(all, filepath.Base(filepath.Dir(file)))
		}
	}

	return all, nil
}

// mentions reports whether the name of a sandbox is a path element, an option or a word of a
// text: arbor-node-1 is not part of arbor-node-12.
func mentions(text, name string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/,:= \t\n", r) }), name)
}

// mountsOf returns the mount points of the mounts that mention a sandbox: it is the source of
// all mounts that the sandbox makes, and part of the path of those that its programs make.
func mountsOf(mountinfo, name string) []string {
	var all []string
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > mountPoint && mentions(line, name) {
			all = append(all, fields[mountPoint])
		}
	}

	return all
}

// mountPoint is the field of a line of mountinfo with the mount point.
const mountPoint = 4

// uncovered returns the paths whose last mount is not one of a sandbox: what its programs
// write there is on the machine.
func uncovered(mountinfo, name string, paths []string) []string {
	top := map[string]bool{}
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > mountPoint {
			top[fields[mountPoint]] = mentions(line, name)
		}
	}

	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return top[path] })
}

// checkCovered returns an error if a path that the sandbox has to cover is not covered, or
// no longer.
func checkCovered(name string) error {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	all := slices.Concat([]string{"/run"}, covered)
	for _, s := range settings {
		all = append(all, kernel+s)
	}
	var paths []string
	for _, path := range all {
		if target, err := filepath.EvalSymlinks(path); err == nil { // it may not exist
			paths = append(paths, target)
		}
	}
	if open := uncovered(string(mountinfo), name, paths); len(open) > 0 {
		return fmt.Errorf("the sandbox %s does not cover %s: its programs may have left something there", name, strings.Join(open, ", "))
	}

	return nil
}
