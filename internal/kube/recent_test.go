package kube

import (
	"testing"
	"time"
)

func TestRecentlyDeleted(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := NewRecentlyDeleted(func() time.Time { return now })
	if d.Has("a") {
		t.Error("an object that was not deleted is remembered")
	}
	d.Add("a")
	now = now.Add(remembered)
	d.Add("b")
	if !d.Has("a") || !d.Has("b") {
		t.Error("an object is forgotten too early")
	}
	now = now.Add(remembered)
	if d.Has("a") || !d.Has("b") {
		t.Error("the older one is still remembered, or the recent one is not")
	}
	now = now.Add(2 * remembered)
	if d.Has("b") || len(d.recent)+len(d.older) != 0 {
		t.Error("objects are remembered forever")
	}
}
