package backoff

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/internal/decide/preemption"
)

const (
	// firstBackOff follows the first failure; every further one doubles it.
	firstBackOff = 100 * time.Millisecond
	// maxBackOff bounds it: room that is free for less may be lost to other pods.
	maxBackOff = 2 * time.Second
	// slowBackOff follows a gang that exceeded the time limit of a cycle or of a binding
	// round, and maxSlowBackOff bounds that.
	slowBackOff, maxSlowBackOff = time.Minute, 10 * time.Minute
	// maxRejectedBackOff bounds the back-off of a gang that does not fit and takes long to be
	// tried: it must not miss room that is reserved for it, or that becomes free.
	maxRejectedBackOff = preemption.RoomTimeout / 4
	// backOffShare is how many times as long as an attempt that failed slowly the back-off
	// is.
	backOffShare = 4
)

// BackOffs keeps a gang that has just failed from being tried at every event: a gang
// of twenty that ends makes twenty events, and each would wake each gang that waits.
// It costs one timer for a gang that was woken while it backs off.
type BackOffs struct {
	wake   func(types.NamespacedName)
	exists func(types.NamespacedName) bool
	now    func() time.Time

	mu    sync.Mutex
	gangs map[types.NamespacedName]*backOff
}

type backOff struct {
	length time.Duration
	until  time.Time
	// timer wakes the gang if it was asked for while it backs off.
	timer *time.Timer
	// slow reports that the gang takes too long to be tried.
	slow bool
	// culprit is the pod that could not be prepared for its node.
	culprit types.UID
}

// New returns back-offs that wake gangs. exists reports whether there is a PodGroup.
func New(wake func(types.NamespacedName), exists func(types.NamespacedName) bool) *BackOffs {
	return &BackOffs{wake: wake, exists: exists, now: time.Now, gangs: map[types.NamespacedName]*backOff{}}
}

// Failed begins a back-off.
func (b *BackOffs) Failed(key types.NamespacedName) { b.FailedSince(key, b.now()) }

// FailedSince begins a back-off after an attempt that began some time ago. It grows if
// the attempt began soon after the last back-off, however long it took.
func (b *BackOffs) FailedSince(key types.NamespacedName, began time.Time) {
	b.begin(key, began, firstBackOff, maxBackOff, &backOff{})
}

// FailedAfter begins a back-off after an attempt that took some time: it is several times
// as long as that, so that the gang takes a small part of the scheduler's time.
func (b *BackOffs) FailedAfter(key types.NamespacedName, took time.Duration) {
	length := min(backOffShare*took, maxSlowBackOff)
	b.begin(key, b.now(), max(firstBackOff, length), max(maxBackOff, length), &backOff{})
}

// Rejected begins the back-off of a gang that does not fit. An attempt that took so long that
// the usual back-off would leave it too much of the scheduler's time has a longer one, unless
// the room that is reserved for the gang is freed: its reservation ends soon.
func (b *BackOffs) Rejected(key types.NamespacedName, took time.Duration, freed bool) {
	if length := min(backOffShare*took, maxRejectedBackOff); length > maxBackOff && !freed {
		b.begin(key, b.now(), length, length, &backOff{})
	} else {
		b.Failed(key)
	}
}

// Exceeded begins the back-off of a gang that took too long.
func (b *BackOffs) Exceeded(key types.NamespacedName) {
	b.begin(key, b.now(), slowBackOff, maxSlowBackOff, &backOff{slow: true})
}

// Doomed begins the back-off of a gang whose places were held in vain for all of
// --bind-timeout, because one pod could not be prepared. The attempt began some time ago.
func (b *BackOffs) Doomed(key types.NamespacedName, began time.Time, pod types.UID) {
	b.begin(key, began, slowBackOff, maxSlowBackOff, &backOff{culprit: pod})
}

// Deleted ends the back-off of a gang if the pod that caused it was deleted.
func (b *BackOffs) Deleted(key types.NamespacedName, pod types.UID) {
	b.mu.Lock()
	is := b.gangs[key]
	caused := is != nil && is.culprit == pod
	b.mu.Unlock()
	if caused {
		b.Forget(key)
	}
}

func (b *BackOffs) begin(key types.NamespacedName, began time.Time, first, limit time.Duration, is *backOff) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.exists(key) {
		return // its deletion has ended the attempt, and no later event would end the back-off
	}
	now := b.now()
	was := b.gangs[key]
	length := first
	// A gang that was not tried for long after its last back-off begins again.
	if was != nil && began.Before(was.until.Add(limit)) {
		length = min(max(first, 2*was.length), limit)
	}
	is.length, is.until = length, now.Add(length)
	if was.stop() {
		// The gang was asked for during the last back-off, and is held since then.
		is.timer = time.AfterFunc(length, func() { b.wake(key) })
	}
	b.gangs[key] = is
}

// Forget ends the back-off: the gang is placed, or has changed. Members that are held
// because of it are woken.
func (b *BackOffs) Forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gangs[key].stop() {
		go b.wake(key)
	}
	delete(b.gangs, key)
}

// Forgive ends the back-off of a gang that has changed, unless it takes too long to be
// tried: edits must not give it the scheduler's time.
func (b *BackOffs) Forgive(key types.NamespacedName) {
	b.mu.Lock()
	is := b.gangs[key]
	slow := is != nil && is.slow
	b.mu.Unlock()
	if !slow {
		b.Forget(key)
	}
}

// Asked reports whether the gang backs off. If it does, it is woken in time.
func (b *BackOffs) Asked(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := b.gangs[key]
	if is == nil {
		return false
	}
	left := is.until.Sub(b.now())
	if left <= 0 {
		return false
	}
	if is.timer == nil {
		is.timer = time.AfterFunc(left, func() { b.wake(key) })
	}

	return true
}

// Length returns how long the last back-off of a gang is; 0 if there is none.
func (b *BackOffs) Length(key types.NamespacedName) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if is := b.gangs[key]; is != nil {
		return is.length
	}

	return 0
}

// stop stops the timer, and reports whether it was to wake the gang.
func (b *backOff) stop() bool { return b != nil && b.timer != nil && b.timer.Stop() }
