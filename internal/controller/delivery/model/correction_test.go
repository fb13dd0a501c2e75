package model

import (
	"testing"
	"time"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
)

// TestCorrectionLog has a storm of corrections, of which the last is written in the end.
func TestCorrectionLog(t *testing.T) {
	l := &correctionLog{}
	epoch := time.Unix(1000, 0)
	for _, step := range []struct {
		reason string
		at     time.Duration
		name   string
		wait   time.Duration
		ok     bool
	}{
		{"the first is written at once", 0, "a", 0, true},
		{"the second after the pause", time.Second, "b", 9 * time.Second, true},
		{"others go with it", 2 * time.Second, "c", 0, false},
		{"others go with it", 9 * time.Second, "d", 0, false},
		{"the next after the next pause", 11 * time.Second, "e", 9 * time.Second, true},
		{"after a quiet time at once", time.Minute, "f", 0, true},
	} {
		wait, ok := l.Note(enov1.Correction{Name: step.name}, epoch.Add(step.at))
		if wait != step.wait || ok != step.ok || l.Read().Name != step.name {
			t.Errorf("%s: %s %t, the last is %q", step.reason, wait, ok, l.Read().Name)
		}
	}
}
