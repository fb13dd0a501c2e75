package cluster

import (
	"testing"
	"time"
)

// Eventually waits for a condition, which is met when it returns no error.
func Eventually(t testing.TB, what string, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain until %s: %v", patience, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
