package scheduler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstPause comes after the first failure; every further one doubles it.
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// pace keeps a gang that has just failed from being tried at every event: a
// gang of twenty that ends makes twenty events, and each would wake each gang
// that waits. It costs one timer for a gang that was woken while it paused, and
// nothing for one that was not.
type pace struct {
	wake func(types.NamespacedName)

	mu    sync.Mutex
	gangs map[types.NamespacedName]*pause
}

type pause struct {
	length time.Duration
	until  time.Time
	woken  bool
}

func newPace(wake func(types.NamespacedName)) *pace {
	return &pace{wake: wake, gangs: map[types.NamespacedName]*pause{}}
}

// failed begins a pause.
func (p *pace) failed(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	was := p.gangs[key]
	length := firstPause
	// Who was left in peace for long after the last pause begins anew.
	if was != nil && now.Before(was.until.Add(lastPause)) {
		length = min(2*was.length, lastPause)
	}
	p.gangs[key] = &pause{length: length, until: now.Add(length)}
}

// forget ends it: the gang has its place, or is another one now.
func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.gangs, key)
}

// hold says whether the gang pauses. If it does, it is woken when that is over.
func (p *pace) hold(key types.NamespacedName) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := p.gangs[key]
	if is == nil {
		return false
	}
	left := time.Until(is.until)
	if left <= 0 {
		return false
	}
	if !is.woken {
		is.woken = true
		time.AfterFunc(left, func() { p.wake(key) })
	}

	return true
}
