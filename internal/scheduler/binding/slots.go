package binding

import (
	"context"
	"slices"
	"sync"
)

// slots bounds how many requests are under way at a time. A slot that becomes free is given
// to the namespace that has the fewest, so that a namespace whose requests are slow, because
// of a webhook or an extender for example, delays one of another namespace by one request at
// most, however many of its own wait. A namespace that is alone may use all of them.
type slots struct {
	mu      sync.Mutex
	free    int
	used    map[string]int
	waiting map[string][]*slotRequest
	made    int // requests that had to wait
}

// A slotRequest is one request that waits. given is closed when it has its slot.
type slotRequest struct {
	number int
	given  chan struct{}
}

func newSlots(n int) *slots {
	return &slots{free: n, used: map[string]int{}, waiting: map[string][]*slotRequest{}}
}

// acquire waits for a slot. The caller must release it, unless there is an error.
func (s *slots) acquire(ctx context.Context, namespace string) error {
	request := s.request(namespace)
	if request == nil {
		return nil
	}
	select {
	case <-request.given:
		return nil
	case <-ctx.Done():
		s.withdraw(namespace, request)

		return context.Cause(ctx)
	}
}

// request takes a slot and returns nil, or returns what to wait for.
func (s *slots) request(namespace string) *slotRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		s.used[namespace]++

		return nil
	}
	s.made++
	request := &slotRequest{number: s.made, given: make(chan struct{})}
	s.waiting[namespace] = append(s.waiting[namespace], request)

	return request
}

// withdraw ends a request, which may have got its slot at the same time.
func (s *slots) withdraw(namespace string, request *slotRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting[namespace], request)
	if at < 0 {
		s.put(namespace)

		return
	}
	s.drop(namespace, at)
}

// release returns the slot of a request that has ended.
func (s *slots) release(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(namespace)
}

// put takes a slot from a namespace and gives it to the next one. The caller has the lock.
func (s *slots) put(namespace string) {
	if s.used[namespace]--; s.used[namespace] <= 0 {
		delete(s.used, namespace)
	}
	next := ""
	for name, requests := range s.waiting {
		if next == "" || s.used[name] < s.used[next] || s.used[name] == s.used[next] && requests[0].number < s.waiting[next][0].number {
			next = name
		}
	}
	if next == "" {
		s.free++

		return
	}
	close(s.waiting[next][0].given)
	s.drop(next, 0)
	s.used[next]++
}

// drop removes a request that waits. The caller has the lock.
func (s *slots) drop(namespace string, at int) {
	if s.waiting[namespace] = slices.Delete(s.waiting[namespace], at, at+1); len(s.waiting[namespace]) == 0 {
		delete(s.waiting, namespace)
	}
}
