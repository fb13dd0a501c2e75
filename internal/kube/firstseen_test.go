package kube

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestFirstSeen(t *testing.T) {
	f, began := NewFirstSeen(time.Hour), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	for _, step := range []struct {
		reason    string
		uid       string
		now, want int
	}{
		{"It is new.", "a", 0, 0},
		{"It was seen before.", "a", 30, 0},
		{"Another is new.", "b", 50, 50},
		{"It was forgotten, and is new again.", "a", 62, 62},
		{"Only what is old was forgotten.", "b", 63, 50},
	} {
		if got := f.Since(types.UID(step.uid), at(step.now)); !got.Equal(at(step.want)) {
			t.Errorf("%s\nat %d, %s is known since %s", step.reason, step.now, step.uid, got)
		}
	}
	f.Since("c", at(300))
	if len(f.times) != 1 {
		t.Errorf("%d objects are remembered", len(f.times))
	}
}
