package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/arbor-control/arbor/test/cluster"
)

// start measures how long the command lines take to print what needs no cluster.
func start(b *board) error {
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
		b.show(result{"start/" + c.name, best.Seconds()})
	}

	return nil
}
