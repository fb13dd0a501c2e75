package backoff

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/scheduler/schedulertest"
)

func TestBackOffs(t *testing.T) {
	now := time.Now()
	woken := make(chan types.NamespacedName, 10)
	b := New(func(key types.NamespacedName) { woken <- key }, always)
	b.now = func() time.Time { return now }
	key := schedulertest.KeyInA("g")
	var lengths []time.Duration
	for range 7 {
		b.Failed(key)
		lengths = append(lengths, b.gangs[key].length)
		now = b.gangs[key].until
	}
	ms := time.Millisecond
	if diff := cmp.Diff([]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2000 * ms, 2000 * ms}, lengths); diff != "" {
		t.Errorf("Each failure doubles the back-off, up to a limit (-want +got):\n%s", diff)
	}
	if b.Asked(key) {
		t.Error("A back-off that is over does not hold the gang.")
	}
	now = now.Add(maxBackOff)
	if b.Failed(key); b.gangs[key].length != firstBackOff {
		t.Errorf("A gang that was not tried for long begins with %s.", b.gangs[key].length)
	}
	if b.Exceeded(key); b.gangs[key].length != slowBackOff {
		t.Errorf("A gang that takes too long backs off for %s.", b.gangs[key].length)
	}
	b.Forget(key)
	if b.Asked(key) {
		t.Error("A gang that has changed does not back off.")
	}

	b.Failed(key)
	for range 2 {
		if !b.Asked(key) {
			t.Fatal("The gang backs off.")
		}
	}
	if got := <-woken; got != key {
		t.Errorf("Woken was %v.", got)
	}
	if len(woken) > 0 {
		t.Error("It was woken more than once.")
	}
	b.Failed(key)
	b.Asked(key)
	b.Failed(key)
	if got := <-woken; got != key {
		t.Errorf("After another failure, woken was %v.", got)
	}
	b.Failed(key)
	b.Asked(key)
	b.Forget(key)
	if got := <-woken; got != key {
		t.Errorf("Members that were held by a back-off that ends early are woken, but woken was %v.", got)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.gangs) > 0 {
		t.Error("Nothing is remembered of a gang that is forgotten.")
	}
}

// A gang that does not fit has a small part of the scheduler's time, however long an attempt
// takes.
func TestBackOffAfterASlowAttempt(t *testing.T) {
	cases := map[string]struct {
		reason string
		took   time.Duration
		want   time.Duration
	}{
		"Quick": {"Most attempts take milliseconds.", 5 * time.Millisecond, firstBackOff},
		"Half":  {"The usual back-off is soon long enough.", maxBackOff / backOffShare, firstBackOff},
		"Slow":  {"The back-off is several times as long as the attempt.", time.Second, backOffShare * time.Second},
		"Limit": {"The gang is tried several times while room is reserved for it, or free.", 9 * time.Second, 7500 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, key := New(func(types.NamespacedName) {}, always), schedulertest.KeyInA("g")
			if b.Rejected(key, tc.took, false); b.gangs[key].length != tc.want {
				t.Errorf("%s\nThe back-off is %s, want %s.", tc.reason, b.gangs[key].length, tc.want)
			}
			if b.Rejected(key, tc.took, false); b.gangs[key].length > max(2*firstBackOff, tc.want) {
				t.Errorf("%s\nThe next back-off is %s.", tc.reason, b.gangs[key].length)
			}
		})
	}
}

// always is a function to which every PodGroup exists.
func always(types.NamespacedName) bool { return true }

func TestBackOffOfDeletedGroup(t *testing.T) {
	b := New(func(types.NamespacedName) {}, func(types.NamespacedName) bool { return false })
	b.Failed(schedulertest.KeyInA("g"))
	b.Exceeded(schedulertest.KeyInA("g"))
	if len(b.gangs) > 0 {
		t.Errorf("%d back-offs of PodGroups that do not exist", len(b.gangs))
	}
}

// A gang whose places were held in vain for --bind-timeout backs off for minutes, unless it
// is edited or the pod that could not be prepared is deleted.
func TestDoomed(t *testing.T) {
	now := time.Now()
	b := New(func(types.NamespacedName) {}, always)
	b.now = func() time.Time { return now }
	key := schedulertest.KeyInA("g")
	var lengths []time.Duration
	for range 5 {
		began := now
		now = now.Add(10 * time.Minute) // --bind-timeout
		b.Doomed(key, began, "slow")
		lengths = append(lengths, b.gangs[key].length)
		now = b.gangs[key].until
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 10}, schedulertest.Scaled(lengths, time.Minute)); diff != "" {
		t.Errorf("The back-off, in minutes (-want +got):\n%s", diff)
	}
	b.Doomed(key, now, "slow")
	if b.Deleted(key, "other"); !b.Asked(key) {
		t.Error("The deletion of another pod ends the back-off.")
	}
	if b.Deleted(key, "slow"); b.Asked(key) {
		t.Error("The deletion of the pod does not end the back-off.")
	}
	b.Doomed(key, now, "slow")
	if b.Forgive(key); b.Asked(key) {
		t.Error("An edit does not end the back-off.")
	}
}

// A gang of which not all members are in the queue is woken less and less often, until it was
// complete.
func TestEarlyWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan time.Time)
		e := NewEarlyWakes(func(types.NamespacedName) { woken <- time.Now() })
		var waits []time.Duration
		for i := range 9 {
			if i == 8 {
				e.Forget(schedulertest.KeyInA("g"))
			}
			began := time.Now()
			e.Add(schedulertest.KeyInA("g"))
			e.Add(schedulertest.KeyInA("g")) // it is to be woken already
			waits = append(waits, (<-woken).Sub(began))
		}
		if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1}, schedulertest.Scaled(waits, time.Second)); diff != "" {
			t.Errorf("It is woken after seconds (-want +got):\n%s", diff)
		}
	})
}

// A gang that does not fit has a longer back-off if it takes long to be tried, but not if the
// victims that it waited for are gone: its reservation would end before the gang is tried again.
func TestBackOffWhenItDoesNotFit(t *testing.T) {
	cases := map[string]struct {
		reason string
		freed  bool
		want   time.Duration
	}{
		"Plain": {"Other pods have most of the scheduler's time.", false, maxRejectedBackOff},
		"Freed": {"Pods were evicted for it in vain if it is not placed soon.", true, firstBackOff},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, key := New(func(types.NamespacedName) {}, always), schedulertest.KeyInA("g")
			b.Rejected(key, 9*time.Second, tc.freed)
			if got := b.Length(key); got != tc.want {
				t.Errorf("%s\nThe back-off is %s, want %s.", tc.reason, got, tc.want)
			}
		})
	}
}
