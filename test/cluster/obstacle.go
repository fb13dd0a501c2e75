package cluster

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
	// shut refuses what comes; else it has to wait until the obstacle is gone, but not
	// for longer than longest, if that is anything.
	shut    bool
	longest time.Duration
	gone    chan struct{}
}

// Forbid has requests refused, as those of somebody without the right are.
func (p *Proxy) Forbid(t testing.TB, like string) (allow func()) {
	t.Helper()

	return p.block(t, &obstacle{like: regexp.MustCompile(like), shut: true})
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

// block returns how to end it. It ends with the test, too.
func (p *Proxy) block(t testing.TB, o *obstacle) (end func()) {
	t.Helper()
	o.gone = make(chan struct{})
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

// passes says whether a request gets through, when it does.
func (p *Proxy) passes(r *http.Request) bool {
	what := r.Method
	if r.URL.Query().Get("watch") != "" {
		what = "WATCH"
	}
	what += " " + r.URL.Path
	p.mu.Lock()
	var met []*obstacle
	for o := range p.inWay {
		if o.like.MatchString(what) {
			met = append(met, o)
		}
	}
	p.mu.Unlock()
	for _, o := range met {
		if o.shut {
			return false
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
	}

	return true
}

// hinder puts what is in the way of a watch between it and whoever watches.
func (p *Proxy) hinder(r *http.Response) error {
	if r.Request.URL.Query().Get("watch") != "" {
		r.Body = &events{ReadCloser: r.Body, passed: func() { p.passes(r.Request) }}
	}

	return nil
}

// events is the body of a watch.
type events struct {
	io.ReadCloser

	passed func()
}

func (e *events) Read(into []byte) (int, error) {
	n, err := e.ReadCloser.Read(into)
	e.passed()

	return n, err
}
