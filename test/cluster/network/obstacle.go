package network

import (
	"io"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"
)

// An obstacle is in the way of requests like "PATCH /api/v1/…", or of the events of
// watches like "WATCH /api/v1/…".
type obstacle struct {
	like *regexp.Regexp
	// skip is how many requests pass before the first one meets the obstacle, times how
	// many of those after it do. Zero times means all.
	skip, times int
	// met is closed when the first request meets the obstacle.
	met chan struct{}
	// code is what requests are answered with. Without one, they have to wait until the
	// obstacle is gone, but not for longer than longest, if that is anything.
	code    int
	longest time.Duration
	gone    chan struct{}
	// stalls has requests wait until the obstacle is gone, and answers them with code then.
	stalls bool
	// swallow is how many requests are carried out and get no answer.
	swallow int
}

// Forbid rejects requests, as those of a client without the permission are.
func (p *Proxy) Forbid(t testing.TB, like string) (allow func()) {
	t.Helper()

	return p.block(t, &obstacle{like: regexp.MustCompile(like), code: http.StatusForbidden})
}

// Fail answers requests with 500. The first ones pass, as many as skip; of those after them, as
// many as times fail, and all if times is 0.
func (p *Proxy) Fail(t testing.TB, like string, skip, times int) (stop func()) {
	t.Helper()

	return p.Reject(t, like, http.StatusInternalServerError, skip, times)
}

// Reject answers requests with a code, which must be one of reasons, as Fail does with 500.
// With 409 it is like an admission webhook that rejects a request with that code.
func (p *Proxy) Reject(t testing.TB, like string, code, skip, times int) (stop func()) {
	t.Helper()

	return p.block(t, &obstacle{like: regexp.MustCompile(like), code: code, skip: skip, times: times})
}

// Trap lets the first requests pass, as many as skip, and holds all that come after them. The
// channel is closed when it holds one.
func (p *Proxy) Trap(t testing.TB, like string, skip int) (caught <-chan struct{}, release func()) {
	t.Helper()
	o := &obstacle{like: regexp.MustCompile(like), skip: skip}
	release = p.block(t, o)

	return o.met, release
}

// Stall holds requests, and answers those that it holds with a code when they are released. The
// channel is closed when it holds one.
func (p *Proxy) Stall(t testing.TB, like string, code int) (caught <-chan struct{}, release func()) {
	t.Helper()
	o := &obstacle{like: regexp.MustCompile(like), code: code, stalls: true}
	release = p.block(t, o)

	return o.met, release
}

// Hold has requests, or events, wait.
func (p *Proxy) Hold(t testing.TB, like string) (release func()) {
	t.Helper()

	return p.block(t, &obstacle{like: regexp.MustCompile(like)})
}

// Slow has each of them take some time.
func (p *Proxy) Slow(t testing.TB, like string, by time.Duration) (hurry func()) {
	t.Helper()

	return p.block(t, &obstacle{like: regexp.MustCompile(like), longest: by})
}

// Swallow carries out the first n requests and loses the answers.
func (p *Proxy) Swallow(t testing.TB, like string, n int) {
	t.Helper()
	p.block(t, &obstacle{like: regexp.MustCompile(like), swallow: n})
}

// swallows reports whether the answer to a request gets lost.
func (p *Proxy) swallows(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for o := range p.inWay {
		if o.swallow > 0 && o.like.MatchString(r.Method+" "+r.URL.Path) {
			o.swallow--
			if o.swallow == 0 {
				o.swallow = -1
			}

			return true
		}
	}

	return false
}

// block returns how to end it. It ends with the test, too.
func (p *Proxy) block(t testing.TB, o *obstacle) (end func()) {
	t.Helper()
	o.gone, o.met = make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inWay[o] = true
	end = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.inWay, o)
		close(o.gone)
	})
	t.Cleanup(end)

	return end
}

// passes returns 0 when a request gets through, or the code that it is answered with.
func (p *Proxy) passes(r *http.Request) int {
	what := r.Method
	if r.URL.Query().Get("watch") != "" {
		what = "WATCH"
	}
	for _, o := range p.obstacles(what + " " + r.URL.Path) {
		if o.code != 0 && !o.stalls {
			return o.code
		}
		var late <-chan time.Time
		if o.longest > 0 {
			late = time.After(o.longest)
		}
		select {
		case <-o.gone:
		case <-late:
		case <-r.Context().Done():
		}
		if o.code != 0 {
			return o.code
		}
	}

	return 0
}

// obstacles are those that a request meets.
func (p *Proxy) obstacles(what string) []*obstacle {
	p.mu.Lock()
	defer p.mu.Unlock()
	var met []*obstacle
	for o := range p.inWay {
		if o.swallow == 0 && o.like.MatchString(what) && o.stops() {
			met = append(met, o)
		}
	}

	return met
}

// stops counts a request, and reports whether the obstacle is in its way.
func (o *obstacle) stops() bool {
	if o.skip > 0 {
		o.skip--

		return false
	}
	switch {
	case o.times < 0: // it has stopped as many as it should
		return false
	case o.times == 1:
		o.times = -1
	case o.times > 1:
		o.times--
	}
	select {
	case <-o.met:
	default:
		close(o.met)
	}

	return true
}

// hinder puts the obstacles of a watch between the server and the client.
func (p *Proxy) hinder(r *http.Response) error {
	p.count(r)
	if r.Request.URL.Query().Get("watch") != "" {
		r.Body = &events{ReadCloser: r.Body, passed: func(data []byte) {
			p.expired(data)
			p.passes(r.Request)
		}}
	}

	return nil
}

// events is the body of a watch.
type events struct {
	io.ReadCloser

	passed func(data []byte)
}

func (e *events) Read(into []byte) (int, error) {
	n, err := e.ReadCloser.Read(into)
	e.passed(into[:n])

	return n, err
}
