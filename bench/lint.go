package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

const manifest = `apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata:
  name: training-job-%d
spec:
  minMember: 2
  queue: default
  subGroups:
    - name: master
      minMember: 1
    - name: workers
      parent: master
      minMember: 4
`

// lint measures the whole command, start of the process included, on a
// thousand files, and that of one file, which is nearly the start alone.
func lint(b *harness.Board) error {
	binary, err := cluster.Binary("arbor", "ARBOR")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "arbor-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), fmt.Appendf(nil, manifest, i), 0o600); err != nil {
			return err
		}
	}

	for figure, path := range map[string]string{"lint/1000-files": dir, "lint/1-file": filepath.Join(dir, "0.yaml")} {
		best := time.Hour
		for range 5 {
			began := time.Now()
			if out, err := exec.CommandContext(context.Background(), binary, "lint", "-f", path).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			best = min(best, time.Since(began))
		}
		b.Show(harness.Result{Name: figure, Value: best.Seconds()})
	}

	return nil
}
