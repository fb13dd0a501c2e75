package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/arbor-control/arbor/bench/harness"
	"github.com/arbor-control/arbor/test/cluster"
)

// start measures how long the command lines take to print what needs no cluster.
func start(b *harness.Board) error {
	for _, c := range []struct {
		name, variable string
		args           []string
	}{
		{"kubectl-arbor", "KUBECTL_ARBOR", []string{"version", "--client"}},
		{"arbor", "ARBOR", []string{"--help"}},
	} {
		binary, err := cluster.Binary(c.name, c.variable)
		if err != nil {
			return err
		}
		best := time.Hour
		for range 10 {
			began := time.Now()
			if out, err := exec.CommandContext(context.Background(), binary, c.args...).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			best = min(best, time.Since(began))
		}
		b.Show(harness.Result{Name: "start/" + c.name, Value: best.Seconds()})
	}

	return nil
}
