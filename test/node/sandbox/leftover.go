package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A scene is what a sandbox could leave behind on a machine.
type scene struct{ mounts, interfaces, directories, cgroups, settings []string }

// look looks at this machine.
func look() (scene, error) {
	var s scene
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			s.mounts = append(s.mounts, fields[4])
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return s, err
	}
	for _, i := range interfaces {
		s.interfaces = append(s.interfaces, i.Name)
	}
	for _, dir := range append([]string{"/run", "/var/run"}, covered...) {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			return s, err
		}
		s.directories = append(s.directories, found...)
	}
	s.settings = currentSettings()
	all, err := mounted()
	if err != nil {
		return s, err
	}
	for _, h := range all {
		found, err := filepath.Glob(filepath.Join(h.at, "arbor-node-*"))
		if err != nil {
			return s, err
		}
		s.cgroups = append(s.cgroups, found...)
	}

	return s, nil
}

// currentSettings returns the settings that a kubelet writes, with their values.
func currentSettings() []string {
	all := make([]string, len(settings))
	for i, name := range settings {
		value, _ := os.ReadFile(kernel + name) // none if this kernel does not have it
		all[i] = fmt.Sprintf("%s=%s", name, strings.TrimSpace(string(value)))
	}

	return all
}

// traces are names that programs of a node give to what they make: other programs of the
// machine may make files and mounts, too.
var traces = []string{"arbor", "cni", "containerd", "kube", "netns", "pods", "containers", "runc", "node0"}

// since lists what has the name of a trace and was not there before.
func (s scene) since(before scene) []string {
	var left []string
	for what, lists := range map[string][2][]string{
		"mount": {s.mounts, before.mounts}, "interface": {s.interfaces, before.interfaces},
		"directory": {s.directories, before.directories},
	} {
		for _, name := range lists[0] {
			trace := slices.ContainsFunc(traces, func(t string) bool { return strings.Contains(name, t) })
			if trace && !slices.Contains(lists[1], name) {
				left = append(left, fmt.Sprintf("%s %s", what, name))
			}
		}
	}
	for _, setting := range s.settings {
		if !slices.Contains(before.settings, setting) {
			left = append(left, "setting "+setting)
		}
	}
	own := fmt.Sprintf("arbor-node-%d", os.Getpid())
	for _, dir := range s.cgroups {
		if filepath.Base(dir) == own {
			left = append(left, "cgroup "+dir)
		}
	}
	slices.Sort(left)

	return left
}
