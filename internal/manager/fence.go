package manager

import (
	"fmt"
	"net/http"
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
// It passes no write unless the lease was renewed a short time ago. Managers that
// never led, or need not, are free.
type fence struct {
	lease string // as a URL has it
	now   func() time.Time
	// renewed is when the last successful renewal was begun.
	renewed atomic.Pointer[time.Time]
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
	if strings.HasSuffix(r.URL.Path, g.fence.lease) {
		response, err := g.onwards.RoundTrip(r)
		if err == nil && r.Method == http.MethodPut && response.StatusCode == http.StatusOK {
			g.fence.renewed.Store(&began)
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

// rejects returns why a request must not be sent, or "". Reads are harmless, and so are
// events, which report that the lease was released.
func (f *fence) rejects(r *http.Request, now time.Time) string {
	if r.Method == http.MethodGet {
		return ""
	}
	if since, late := f.late(now); late {
		return fmt.Sprintf("the lease was renewed %s ago", since.Round(time.Second))
	}
	if f.closed.Load() && !strings.Contains(r.URL.Path, "/events") {
		return "this one is shutting down"
	}

	return ""
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
