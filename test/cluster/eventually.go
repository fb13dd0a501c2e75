package cluster

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// patience is how long anything may take before a test gives up: long, since
// it is only ever waited for when something is broken. On a machine that runs several
// control planes at once, half a minute can become two.
const patience = 4 * time.Minute

// Eventually waits for a condition, which is met when it returns no error.
func Eventually(t testing.TB, what string, condition func() error) {
	t.Helper()
	if err := poll(what, nil, condition); err != nil {
		t.Fatal(err)
	}
}

// poll waits for a condition, or until dead is closed.
func poll(what string, dead <-chan struct{}, condition func() error) error {
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-dead:
			return errors.Join(fmt.Errorf("waited in vain until %s: the process ended", what), err)
		case <-deadline:
			return fmt.Errorf("waited %s in vain until %s: %w", patience, what, err)
		case <-tick.C:
		}
	}
}
