package executor

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"
)

// unlimited is the smallest value that means no limit: cgroup v1 shows a huge number.
const unlimited = math.MaxInt64 / 2

// shellKilled is the exit code of a shell whose last program got SIGKILL.
const shellKilled = 128 + int(syscall.SIGKILL)

// memoryKills returns how many processes of a container the kernel has killed because its
// memory was used up, and -1 if that cannot be read. cgroup is where the container has its
// cgroups mounted: of version 2 there is one, of version 1 one for each kind of resource.
func memoryKills(cgroup string) int64 {
	if cgroup == "" {
		return -1
	}
	for _, path := range []string{"memory.events", "memory/memory.oom_control"} {
		data, err := os.ReadFile(filepath.Join(cgroup, path))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == "oom_kill" {
				if n, err := strconv.ParseInt(value, 10, 64); err == nil {
					return n
				}
			}
		}
	}

	return -1
}

// memoryLimit returns the limit of a container's memory, "" if it has none or it cannot be
// read.
func memoryLimit(cgroup string) string {
	for _, path := range []string{"memory.max", "memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(filepath.Join(cgroup, path))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && n < unlimited {
			return resource.NewQuantity(n, resource.BinarySI).String()
		}
	}

	return ""
}

// explainKill adds to the error of a program that lack of memory is its cause, if it is or
// probably is. kills is how many processes were killed for that before the program ran.
func (p *Process) explainKill(err *exec.ExitError, kills int64) error {
	now := memoryKills(p.Cgroup)
	counted := kills >= 0 && now >= 0
	text := "it ran out of memory"
	switch {
	case counted && now > kills: // it, or what it has started
	case counted, !isKilled(err):
		return err
	case p.Cgroup == "":
		return fmt.Errorf("%w; a likely cause is a lack of memory", err)
	default:
		text = "it probably ran out of memory"
	}
	if limit := memoryLimit(p.Cgroup); limit != "" {
		text += ", the limit of the container is " + limit
	}

	return fmt.Errorf("%w; %s: raise spec.podOverrides.resources.limits.memory of the Synthesizer", err, text)
}

// isKilled reports whether a program got SIGKILL, or is a shell whose program got it.
func isKilled(err *exec.ExitError) bool {
	status, ok := err.Sys().(syscall.WaitStatus)

	return err.ExitCode() == shellKilled || ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
