package fence

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// A Fence keeps a replica that led and was suspended, with its machine or alone, from
// continuing where it was: before it can find out that another one leads, it would
// write what it had in hand, such as objects of a composition that is gone since.
// It passes no write unless the lease was renewed a short time ago, and none after a renewal
// that the API server rejected because another client has changed the lease: if the lease
// was deleted, another replica leads at once. Replicas that never led, or need not, are free.
type Fence struct {
	lease string // as a URL has it
	// deadline is after how long without a renewal a leader gives up.
	deadline time.Duration
	now      func() time.Time
	// renewed is when the last successful renewal was begun.
	renewed atomic.Pointer[time.Time]
	// lost is why a replica that led does not hold the lease any more; nil if it does.
	lost atomic.Pointer[string]
	// closed is set when the controllers have ended: a reconcile that did not end in time
	// writes nothing while another replica leads.
	closed atomic.Bool
}

const (
	leaseChanged  = "another client has changed or deleted the lease"
	leaseReleased = "this one has released the lease"
)

// New returns a fence for a lease whose holder gives up after deadline without a renewal.
func New(namespace, lease string, deadline time.Duration) *Fence {
	return &Fence{lease: "/namespaces/" + namespace + "/leases/" + lease, deadline: deadline, now: time.Now}
}

// Close rejects all further writes except events.
func (f *Fence) Close() { f.closed.Store(true) }

// Around has everything that is sent with a config pass the fence. The lease must be renewed with
// the same config.
func (f *Fence) Around(config *rest.Config) *rest.Config {
	config.Wrap(func(onwards http.RoundTripper) http.RoundTripper { return &gate{onwards, f} })

	return config
}

// gate is a way through a fence.
type gate struct {
	onwards http.RoundTripper
	fence   *Fence
}

// RoundTrip sends a request, or returns why it must not be sent.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	began := g.fence.now()
	if g.fence.isLease(r) {
		response, err := g.onwards.RoundTrip(r)
		if err == nil && r.Method != http.MethodGet {
			g.fence.answered(began, response.StatusCode, releases(r))
		}

		return response, err
	}
	if why := g.fence.rejects(r, began); why != "" {
		if r.Body != nil {
			_ = r.Body.Close()
		}

		return nil, fmt.Errorf("%s %s was not sent: another replica may lead, since %s", r.Method, r.URL.Path, why)
	}

	return g.onwards.RoundTrip(r)
}

// isLease reports whether a request is about the lease. A leader whose lease was deleted creates
// it again, unless another replica was faster.
func (f *Fence) isLease(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, f.lease) || r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path.Dir(f.lease))
}

// releases reports whether a request writes a lease without a holder. client-go releases the lease
// of a replica that has stopped leading, also if another one has taken it since.
func releases(r *http.Request) bool {
	if r.Method != http.MethodPut || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return false
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil) // JSON or protobuf
	lease, ok := o.(*coordinationv1.Lease)

	return err == nil && ok && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "")
}

// answered records the response to a renewal, to the creation of the lease, or to its release. A
// rejected one has no meaning for a replica that never led: it may have tried to take a lease that
// another one took first.
func (f *Fence) answered(began time.Time, code int, released bool) {
	switch {
	case f.renewed.Load() == nil && (released || code == http.StatusConflict || code == http.StatusNotFound): // it never led
	case released:
		f.lost.Store(new(leaseReleased))
	case code == http.StatusConflict, code == http.StatusNotFound:
		f.lost.Store(new(leaseChanged))
	case code == http.StatusOK, code == http.StatusCreated:
		f.lost.Store(nil)
		f.renewed.Store(&began)
	}
}

// rejects returns why a request must not be sent, "" if it may be. Reads are harmless. So are
// reviews, which webhooks and metrics need until the process ends, and events of a replica that
// shuts down, which report that the lease was released.
func (f *Fence) rejects(r *http.Request, now time.Time) string {
	since, late := f.late(now)
	lost := f.lost.Load()
	switch {
	case r.Method == http.MethodGet, isReview(r):
		return ""
	case lost != nil && (*lost != leaseReleased || !isEvent(r)):
		return *lost
	case late:
		return fmt.Sprintf("the lease was renewed %s ago", since.Round(time.Second))
	case f.closed.Load() && !isEvent(r):
		return "this one is shutting down"
	default:
		return ""
	}
}

// events are the paths of events.
var events = regexp.MustCompile(`/(api/v1|apis/events\.k8s\.io/v1)/namespaces/[^/]+/events(/[^/]+)?$`)

// isEvent reports whether a request creates or changes an event.
func isEvent(r *http.Request) bool { return events.MatchString(r.URL.Path) }

// isReview reports whether a request is a TokenReview or an access review.
func isReview(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/apis/authentication.k8s.io/") || strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/")
}

// late returns how long ago the lease was renewed, and whether that is too long. One of the two
// clocks stands still while a machine sleeps, the other one can be set.
func (f *Fence) late(now time.Time) (time.Duration, bool) {
	renewed := f.renewed.Load()
	if renewed == nil {
		return 0, false
	}
	since := max(now.Sub(*renewed), now.Round(0).Sub(renewed.Round(0)))

	return since, since > f.deadline
}
