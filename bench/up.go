package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/arbor-control/arbor/test/cluster"
)

// up measures the time from the command to the kubeconfig, on an empty and on
// a used directory, and then the memory of every process.
func up(b *board) error {
	dir, err := os.MkdirTemp("", "arbor-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	for _, figure := range []string{"up/first", "up/again"} {
		began := time.Now()
		u, err := cluster.Start(dir)
		if err != nil {
			return err
		}
		b.show(result{figure, time.Since(began).Seconds()})
		if figure == "up/again" {
			memory, err := memoryOfChildren(u.PID())
			if err != nil {
				return err
			}
			b.show(memory...)
		}
		b.show(result{strings.Replace(figure, "up/", "up/stop-", 1), u.Stop().Seconds()})
	}

	return nil
}

// memoryOfChildren reads how much memory each child of a process uses.
func memoryOfChildren(parent int) ([]result, error) {
	pids, err := children(parent)
	if err != nil {
		return nil, err
	}
	var all []result
	total := 0.0
	for _, pid := range pids {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return nil, err
		}
		kib, err := procField(pid, "VmRSS:")
		if err != nil {
			return nil, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
		}
		all = append(all, result{"memory/" + field(strings.ReplaceAll(string(env), "\x00", "\n"), "ARBOR_CHILD="), kib / 1024})
		total += kib / 1024
	}

	return append(all, result{"memory/total", total}), nil
}

// children are the processes that a process has started.
func children(parent int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err != nil || field(string(status), "PPid:") != strconv.Itoa(parent) {
			continue // it has ended, or belongs to another process
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}

	return pids, nil
}

func field(text, key string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(value)
		}
	}

	return ""
}
