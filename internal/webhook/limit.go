package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of everything that is served to callers that are not authenticated. The API server sends
// its reviews from one or a few addresses; a pod that sends other requests leaves it the capacity
// above the limits of one address.
const (
	// maxBody is the largest body that is read. The handlers reject larger ones.
	maxBody = 7 << 20
	// maxBuffered are the bytes of all bodies, and of those from one address.
	maxBuffered, maxBufferedByHost = 96 << 20, 32 << 20
	// maxOpen are the requests that are read or wait, and those from one address.
	maxOpen, maxOpenByHost = 2000, 500
	// maxRunning are the requests that are decided at a time, and those from one address.
	maxRunning, maxRunningByHost = 32, 24

	// readTimeout is how long a body may take, if the caller waits that long.
	readTimeout = 5 * time.Second
)

// errBusy is that a limit of requests is reached.
var errBusy = errors.New("too many requests: try again")

// A Limiter bounds the memory and the concurrency of HTTP handlers. Requests that exceed
// a limit are answered with 429 and Retry-After, which the API server follows.
type Limiter struct {
	running chan struct{}
	read    time.Duration
	wait    time.Duration

	mu     sync.Mutex
	open   int
	bytes  int
	byHost map[string]*usage
}

// usage is that of one address.
type usage struct {
	open, bytes int
	running     chan struct{}
}

// NewLimiter returns a Limiter with the limits of this package, for callers that wait as
// long as timeout. They get an answer before they give up.
func NewLimiter(timeout time.Duration) *Limiter {
	return &Limiter{running: make(chan struct{}, maxRunning), read: min(readTimeout, timeout), wait: timeout * 8 / 10, byHost: map[string]*usage{}}
}

// Around returns a handler that reads the body of a request within a deadline, waits
// for its turn, and then passes the request on.
func (l *Limiter) Around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held, ok := l.enter(r.RemoteAddr)
		if !ok {
			busy(w)

			return
		}
		defer held.leave()
		body, err := l.receive(w, r, held)
		switch {
		case errors.Is(err, errBusy):
			busy(w)

			return
		case err != nil:
			http.Error(w, fmt.Sprintf("cannot read the request within %s: %v", l.read, err), http.StatusRequestTimeout)

			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), l.wait)
		defer cancel()
		if !held.takeTurn(ctx) {
			busy(w)

			return
		}
		defer held.endTurn()
		// A body that is too large is longer than what was read of it.
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
		h.ServeHTTP(w, r)
	})
}

// receive reads the body.
func (l *Limiter) receive(w http.ResponseWriter, r *http.Request, held *holding) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(l.read)); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	chunk := make([]byte, 32<<10)
	for body.Len() <= maxBody {
		n, err := r.Body.Read(chunk[:min(len(chunk), maxBody+1-body.Len())])
		if !held.grow(n) {
			return nil, errBusy
		}
		body.Write(chunk[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}

	return body.Bytes(), control.SetReadDeadline(time.Time{})
}

// A holding is what one request uses of the limits.
type holding struct {
	limiter *Limiter
	host    string
	bytes   int
	running chan struct{} // that of the host
}

func (l *Limiter) enter(address string) (*holding, bool) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.byHost[host]
	if l.open >= maxOpen || u != nil && u.open >= maxOpenByHost {
		return nil, false
	}
	if u == nil {
		u = &usage{running: make(chan struct{}, maxRunningByHost)}
		l.byHost[host] = u
	}
	l.open++
	u.open++

	return &holding{limiter: l, host: host, running: u.running}, true
}

func (h *holding) grow(n int) bool {
	l := h.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.byHost[h.host]
	if l.bytes+n > maxBuffered || u.bytes+n > maxBufferedByHost {
		return false
	}
	l.bytes += n
	u.bytes += n
	h.bytes += n

	return true
}

func (h *holding) leave() {
	l := h.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.byHost[h.host]
	l.open--
	l.bytes -= h.bytes
	u.open--
	u.bytes -= h.bytes
	if u.open == 0 {
		delete(l.byHost, h.host)
	}
}

// takeTurn waits until a request may be decided: first among those of its address, then among all.
func (h *holding) takeTurn(ctx context.Context) bool {
	select {
	case h.running <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	select {
	case h.limiter.running <- struct{}{}:
		return true
	case <-ctx.Done():
		<-h.running

		return false
	}
}

func (h *holding) endTurn() {
	<-h.limiter.running
	<-h.running
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, errBusy.Error(), http.StatusTooManyRequests)
}
