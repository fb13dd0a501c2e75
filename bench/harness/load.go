package harness

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arbor-control/arbor/test/cluster"
)

// Clients that ask at once.
const Clients = 16

// ShortPoll and later are how often it is checked whether something has happened.
const ShortPoll, LongPoll = 10 * time.Millisecond, 200 * time.Millisecond

// OnControlPlane runs a measurement on a control plane of its own.
func OnControlPlane(measure func(*cluster.Up) error, args ...string) error {
	dir, err := os.MkdirTemp("", "arbor-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	u, err := cluster.Start(dir, append([]string{"--bare", "--nodes=0"}, args...)...)
	if err != nil {
		return err
	}
	defer u.Stop()

	return measure(u)
}

// PerSecond does something n times, by all clients together, and returns how
// often per second.
func PerSecond(n int, do func(i int) error) (float64, error) {
	var (
		next   atomic.Int64
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
	)
	began := time.Now()
	for range Clients {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				if err := do(i); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()

					return
				}
			}
		})
	}
	wg.Wait()

	return float64(n) / time.Since(began).Seconds(), failed
}

// Until waits for something, a long while, and looks now and then: looking
// costs those who are measured.
func Until(ctx context.Context, interval time.Duration, met func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	for {
		ok, err := met(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
}

// InTurns does two things, in one order in even rounds and in the other order in odd ones.
func InTurns(round int, first, second func() error) error {
	if round%2 == 1 {
		first, second = second, first
	}
	if err := first(); err != nil {
		return err
	}

	return second()
}
