package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// readyTimeout is the time limit for a component to become ready.
	readyTimeout = 2 * time.Minute
	poll         = 100 * time.Millisecond
	// grace is how long a component may take to end. Two rounds of it (the API server is stopped
	// last) stay below the ten seconds that a user waits.
	grace = 4 * time.Second

	// A child that dies is restarted after a pause that doubles each time,
	// and is given up when it died this often without a quiet time between.
	firstPause  = 200 * time.Millisecond
	maxFailures = 6
	quiet       = time.Minute
)

// A component is one child of the control plane.
type component struct {
	name  string
	args  []string
	ready func(context.Context) error
}

// A supervisor keeps components running.
type supervisor struct {
	home *home
	say  func(string, ...any)

	mu   sync.Mutex
	pids map[string]int
}

// keep runs a component until ctx ends, and calls up when it is ready for the
// first time. It returns an error when the component cannot be kept running.
func (s *supervisor) keep(ctx context.Context, c component, up func()) error {
	var b backoff
	for {
		started := time.Now()
		p, err := startProcess(s.home, c.name, c.args)
		if err != nil {
			return err
		}
		s.note(c.name, p.cmd.Process.Pid)

		switch err := s.await(ctx, c, p); {
		case err == nil && up != nil:
			up()
			up = nil
		case err != nil && ctx.Err() == nil:
			p.stop(grace)
			if up != nil {
				// A child that never became ready is not restarted.
				return err
			}
		}

		if p.outlives(ctx) {
			p.stop(grace)

			return nil
		}
		b.died(time.Since(started))
		if b.failures >= maxFailures {
			return p.failure(fmt.Sprintf("died %d times in a row", b.failures))
		}
		s.say("%s died (%v), starting it again in %s", c.name, p.err, b.pause)
		if !sleep(ctx, b.pause) {
			return nil
		}
	}
}

// A backoff remembers how often a child died in a row, and how long to pause
// before it is started again.
type backoff struct {
	failures int
	pause    time.Duration
}

// died counts a death after that much life.
func (b *backoff) died(after time.Duration) {
	if b.failures == 0 || after > quiet {
		*b = backoff{failures: 1, pause: firstPause}

		return
	}
	b.failures++
	b.pause *= 2
}

// await returns when the child is ready, and an error when it will not be.
func (s *supervisor) await(ctx context.Context, c component, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	started, said := time.Now(), time.Now()
	for {
		err := c.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure("cannot start")
		case <-ctx.Done():
			return p.failure(fmt.Sprintf("is not ready after %s (%v)", time.Since(started).Round(time.Second), err))
		case <-time.After(poll):
		}
		if time.Since(said) > 5*time.Second {
			s.say("still waiting for %s (%s): %v", c.name, time.Since(started).Round(time.Second), err)
			said = time.Now()
		}
	}
}

func (s *supervisor) note(name string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids[name] = pid
}

func (s *supervisor) pid(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.pids[name]
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
