package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Child returns the process of one component of this control plane, such as
// kube-apiserver.
func (u *Up) Child(name string) (int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), "ARBOR_CHILD="+name) {
			continue
		}
		args, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err == nil && strings.Contains(string(args), u.Dir) {
			return strconv.Atoi(filepath.Base(filepath.Dir(file)))
		}
	}

	return 0, fmt.Errorf("there is no process of %s", name)
}
