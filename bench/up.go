package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

// up measures the time from the command to the kubeconfig, on an empty and on
// a used directory, and then the memory of every process.
func up(b *harness.Board) error {
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
		b.Show(harness.Result{Name: figure, Value: time.Since(began).Seconds()})
		if figure == "up/again" {
			memory, err := memoryOfChildren(u.PID())
			if err != nil {
				return err
			}
			b.Show(memory...)
		}
		b.Show(harness.Result{Name: strings.Replace(figure, "up/", "up/stop-", 1), Value: u.Stop().Seconds()})
	}

	return nil
}

// memoryOfChildren reads how much memory each child of a process uses.
func memoryOfChildren(parent int) ([]harness.Result, error) {
	pids, err := harness.Children(parent)
	if err != nil {
		return nil, err
	}
	var all []harness.Result
	total := 0.0
	for _, pid := range pids {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return nil, err
		}
		kib, err := harness.ProcessKilobytes(pid, "VmRSS:")
		if err != nil {
			return nil, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
		}
		all = append(all, harness.Result{Name: "memory/" + harness.Field(strings.ReplaceAll(string(env), "\x00", "\n"), "ARBOR_CHILD="), Value: kib / 1024})
		total += kib / 1024
	}

	return append(all, harness.Result{Name: "memory/total", Value: total}), nil
}
