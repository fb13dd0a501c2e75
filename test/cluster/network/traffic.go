package network

import (
	"bytes"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"
)

// traffic is what a proxy has seen. The lock of the proxy guards it.
type traffic struct {
	requests int
	expired  int
	records  map[*record]bool
}

type record struct {
	like *regexp.Regexp
	seen []string
}

// Requests is how many have arrived.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.traffic.requests
}

// Expired is how often the API server has answered that a resource version is too old, at the
// beginning of a watch or in the middle of one.
func (p *Proxy) Expired() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.traffic.expired
}

// Record records requests like "PATCH /api/v1/…" until the test ends, and returns how to read them.
func (p *Proxy) Record(t testing.TB, like string) (seen func() []string) {
	t.Helper()
	r := &record{like: regexp.MustCompile(like)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.traffic.records == nil {
		p.traffic.records = map[*record]bool{}
	}
	p.traffic.records[r] = true
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.traffic.records, r)
	})

	return func() []string {
		p.mu.Lock()
		defer p.mu.Unlock()

		return slices.Clone(r.seen)
	}
}

// arrived counts a request, and records it.
func (p *Proxy) arrived(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traffic.requests++
	what := r.Method + " " + r.URL.Path
	for one := range maps.Keys(p.traffic.records) {
		if one.like.MatchString(what) {
			one.seen = append(one.seen, what)
		}
	}
}

// count counts an answer, if it reports that a resource version is too old.
func (p *Proxy) count(r *http.Response) {
	if r.StatusCode == http.StatusGone {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.traffic.expired++
	}
}

// expired counts an event of a watch that reports it. The text is the same in every encoding.
func (p *Proxy) expired(data []byte) {
	if bytes.Contains(data, []byte("too old resource version")) || bytes.Contains(data, []byte("provided watch is too old")) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.traffic.expired++
	}
}

// withoutBookmarks returns a request for a watch without bookmarks. The one that ends the initial
// events is promised, so a watch that begins with them keeps all.
func withoutBookmarks(r *http.Request) *http.Request {
	query := r.URL.Query()
	if query.Get("sendInitialEvents") != "" {
		return r
	}
	query.Del("allowWatchBookmarks")
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()

	return r
}
