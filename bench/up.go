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
func up() ([]result, error) {
	dir, err := os.MkdirTemp("", "arbor-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	var all []result
	for _, figure := range []string{"up/first", "up/again"} {
		began := time.Now()
		u, err := cluster.Start(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, result{figure, time.Since(began).Seconds()})
		if figure == "up/again" {
			memory, err := memoryOfChildren(u.PID())
			if err != nil {
				return nil, err
			}
			all = append(all, memory...)
		}
		all = append(all, result{strings.Replace(figure, "up/", "up/stop-", 1), u.Stop().Seconds()})
	}

	return all, nil
}

// memoryOfChildren reads how much memory each child of a process holds.
func memoryOfChildren(parent int) ([]result, error) {
	var all []result
	total := 0.0
	stats, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil, err
	}
	for _, file := range stats {
		status, err := os.ReadFile(file)
		if err != nil {
			continue // it ended while we looked
		}
		if field(string(status), "PPid:") != strconv.Itoa(parent) {
			continue
		}
		env, err := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if err != nil {
			return nil, err
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(field(string(status), "VmRSS:"), " kB"), 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		all = append(all, result{"memory/" + field(strings.ReplaceAll(string(env), "\x00", "\n"), "ARBOR_CHILD="), kib / 1024})
		total += kib / 1024
	}

	return append(all, result{"memory/total", total}), nil
}

func field(text, key string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key); ok {
			return strings.TrimSpace(value)
		}
	}

	return ""
}
