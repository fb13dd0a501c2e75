package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestBackOffs(t *testing.T) {
	now := time.Now()
	woken := make(chan types.NamespacedName, 10)
	b := newBackOffs(func(key types.NamespacedName) { woken <- key }, always)
	b.now = func() time.Time { return now }
	key := gangKey("g")
	var lengths []time.Duration
	for range 7 {
		b.failed(key)
		lengths = append(lengths, b.gangs[key].length)
		now = b.gangs[key].until
	}
	ms := time.Millisecond
	if diff := cmp.Diff([]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2000 * ms, 2000 * ms}, lengths); diff != "" {
		t.Errorf("Each failure doubles the back-off, up to a limit (-want +got):\n%s", diff)
	}
	if b.asked(key) {
		t.Error("A back-off that is over does not hold the gang.")
	}
	now = now.Add(maxBackOff)
	if b.failed(key); b.gangs[key].length != firstBackOff {
		t.Errorf("A gang that was not tried for long begins with %s.", b.gangs[key].length)
	}
	if b.exceeded(key); b.gangs[key].length != slowBackOff {
		t.Errorf("A gang that takes too long backs off for %s.", b.gangs[key].length)
	}
	b.forget(key)
	if b.asked(key) {
		t.Error("A gang that has changed does not back off.")
	}

	b.failed(key)
	for range 2 {
		if !b.asked(key) {
			t.Fatal("The gang backs off.")
		}
	}
	if got := <-woken; got != key {
		t.Errorf("Woken was %v.", got)
	}
	if len(woken) > 0 {
		t.Error("It was woken more than once.")
	}
	b.failed(key)
	b.asked(key)
	b.failed(key)
	if got := <-woken; got != key {
		t.Errorf("After another failure, woken was %v.", got)
	}
	b.failed(key)
	b.asked(key)
	b.forget(key)
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
			b, key := newBackOffs(func(types.NamespacedName) {}, always), gangKey("g")
			if b.rejected(key, tc.took); b.gangs[key].length != tc.want {
				t.Errorf("%s\nThe back-off is %s, want %s.", tc.reason, b.gangs[key].length, tc.want)
			}
			if b.rejected(key, tc.took); b.gangs[key].length > max(2*firstBackOff, tc.want) {
				t.Errorf("%s\nThe next back-off is %s.", tc.reason, b.gangs[key].length)
			}
		})
	}
}

// always is a function to which every PodGroup exists.
func always(types.NamespacedName) bool { return true }

func TestBackOffOfDeletedGroup(t *testing.T) {
	b := newBackOffs(func(types.NamespacedName) {}, func(types.NamespacedName) bool { return false })
	b.failed(gangKey("g"))
	b.exceeded(gangKey("g"))
	if len(b.gangs) > 0 {
		t.Errorf("%d back-offs of PodGroups that do not exist", len(b.gangs))
	}
}
