package manager

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// renewDeadline is after how long without a renewal a leader gives up; it is
// controller-runtime's. Another can lead five seconds later.
const renewDeadline = 10 * time.Second

// A fence keeps a manager that led and was paused, with its machine or alone, from
// going on where it was: before it can find out that another one leads, it would
// write what it had in hand, such as objects of a composition that is gone since.
// It passes no write unless the lease was renewed a short time ago, and none after a renewal
// that the API server rejected because another client has changed the lease: if the lease
// was deleted, another manager leads at once. Managers that never led, or need not, are free.
type fence struct {
	lease string // as a URL has it
	now   func() time.Time
	// renewed is when the last successful renewal was begun.
	renewed atomic.Pointer[time.Time]
	// lost is set if the API server rejected the last renewal of a manager that led.
	lost atomic.Bool
	// closed is set when the controllers have ended: a reconcile that did not end in time
	// writes nothing while another manager leads.
	closed atomic.Bool
}

func newFence(namespace, lease string) *fence {
	return &fence{lease: "/namespaces/" + namespace + "/leases/" + lease, now: time.Now}
}

// around has everything that is sent with a config pass the fence.
func (f *fence) around(config *rest.Config) *rest.Config {
	config.Wrap(func(onwards http.RoundTripper) http.RoundTripper { return &gate{onwards, f} })

	return config
}

// gate is a way through a fence.
type gate struct {
	onwards http.RoundTripper
	fence   *fence
}

// RoundTrip sends a request, or refuses to.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	began := g.fence.now()
	if g.fence.isLease(r) {
		response, err := g.onwards.RoundTrip(r)
		if err == nil && r.Method != http.MethodGet {
			g.fence.answered(began, response.StatusCode)
		}

		return response, err
	}
	if why := g.fence.rejects(r, began); why != "" {
		if r.Body != nil {
			_ = r.Body.Close()
		}

		return nil, fmt.Errorf("%s %s was not sent: another manager may lead, since %s", r.Method, r.URL.Path, why)
	}

	return g.onwards.RoundTrip(r)
}

// isLease reports whether a request is about the lease. A leader whose lease was deleted creates
// it again, unless another manager was faster.
func (f *fence) isLease(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, f.lease) || r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path.Dir(f.lease))
}

// answered notes the answer to a renewal, or to the creation of the lease. One that is rejected says nothing about a manager
// that never led: it may have tried to take a lease that another one took first.
func (f *fence) answered(began time.Time, code int) {
	switch code {
	case http.StatusOK, http.StatusCreated:
		f.lost.Store(false)
		f.renewed.Store(&began)
	case http.StatusConflict, http.StatusNotFound:
		f.lost.Store(f.renewed.Load() != nil)
	}
}

// rejects returns why a request must not be sent, or "". Reads are harmless, and so are
// events of a manager that shuts down, which report that the lease was released.
func (f *fence) rejects(r *http.Request, now time.Time) string {
	since, late := f.late(now)
	switch {
	case r.Method == http.MethodGet:
		return ""
	case f.lost.Load():
		return "another client has changed or deleted the lease"
	case late:
		return fmt.Sprintf("the lease was renewed %s ago", since.Round(time.Second))
	case f.closed.Load() && !strings.Contains(r.URL.Path, "/events"):
		return "this one is shutting down"
	default:
		return ""
	}
}

// late says how long ago the lease was renewed, and whether that is too long. One of
// the two clocks stands still while a machine sleeps, the other one can be set.
func (f *fence) late(now time.Time) (time.Duration, bool) {
	renewed := f.renewed.Load()
	if renewed == nil {
		return 0, false
	}
	since := max(now.Sub(*renewed), now.Round(0).Sub(renewed.Round(0)))

	return since, since > renewDeadline
}
