package manager

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

type answering int

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteHeader(int(a))

	return w.Result(), nil
}

func TestFence(t *testing.T) {
	const (
		own    = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/one"
		other  = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/another"
		object = "/api/v1/namespaces/x/configmaps/y"
	)
	cases := map[string]struct {
		reason string
		// renewal is what was sent first, and answered so.
		renewal, path string
		answer        int
		after         time.Duration
		method, to    string
		// closed is whether the controllers have ended.
		closed  bool
		refused bool
	}{
		"NeverLed":    {reason: "Who never led is free.", renewal: http.MethodGet, path: own, answer: 200, after: time.Hour, method: http.MethodPost, to: object},
		"Leads":       {reason: "Who leads writes.", renewal: http.MethodPut, path: own, answer: 200, after: renewDeadline, method: http.MethodPost, to: object},
		"Paused":      {reason: "Who has not renewed for long does not.", renewal: http.MethodPut, path: own, answer: 200, after: renewDeadline + 1, method: http.MethodPost, to: object, refused: true},
		"Patches":     {reason: "Whatever kind of write it is.", renewal: http.MethodPut, path: own, answer: 200, after: time.Minute, method: http.MethodPatch, to: object, refused: true},
		"Reads":       {reason: "To look does no harm.", renewal: http.MethodPut, path: own, answer: 200, after: time.Minute, method: http.MethodGet, to: object},
		"Renews":      {reason: "A late renewal is for the API server to judge.", renewal: http.MethodPut, path: own, answer: 200, after: time.Minute, method: http.MethodPut, to: own},
		"Lost":        {reason: "A renewal that failed is none.", renewal: http.MethodPut, path: own, answer: 409, after: time.Minute, method: http.MethodPost, to: object},
		"Closed":      {reason: "Controllers that have ended write nothing.", renewal: http.MethodPut, path: own, answer: 200, closed: true, method: http.MethodPost, to: object, refused: true},
		"ClosedReads": {reason: "They may read.", renewal: http.MethodPut, path: own, answer: 200, closed: true, method: http.MethodGet, to: object},
		"Event":       {reason: "And report that the lease was released.", renewal: http.MethodPut, path: own, answer: 200, closed: true, method: http.MethodPost, to: "/apis/events.k8s.io/v1/namespaces/ours/events"},
		"OtherLeases": {reason: "Other leases say nothing about us.", renewal: http.MethodPut, path: other, answer: 200, after: time.Minute, method: http.MethodPost, to: object},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			f := newFence("ours", "one")
			f.now = func() time.Time { return now }
			send := func(method, path string, answer int) error {
				response, err := (&gate{answering(answer), f}).RoundTrip(httptest.NewRequestWithContext(t.Context(), method, path, nil))
				if err == nil {
					_ = response.Body.Close()
				}

				return err
			}
			if err := send(tc.renewal, tc.path, tc.answer); err != nil {
				t.Fatal(err)
			}
			now = now.Add(tc.after)
			f.closed.Store(tc.closed)
			if err := send(tc.method, tc.to, http.StatusOK); (err != nil) != tc.refused {
				t.Errorf("%s\n%s %s: %v", tc.reason, tc.method, tc.to, err)
			}
		})
	}
}
