package fence

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const renewDeadline = 10 * time.Second

type answering int

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteHeader(int(a))

	return w.Result(), nil
}

// A renewal that is rejected ends the writes of a leader until one is accepted again, or until it
// has created the lease.
func TestFenceOfALostLease(t *testing.T) {
	const (
		leases = "/apis/coordination.k8s.io/v1/namespaces/ours/leases"
		object = "/api/v1/namespaces/x/configmaps/y"
	)
	type request struct {
		method, path string
		answer       int
		body         string
	}
	renewal := func(answer int) request {
		return request{http.MethodPut, leases + "/one", answer, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","spec":{"holderIdentity":"me"}}`}
	}
	creation := func(answer int) request { return request{http.MethodPost, leases, answer, ""} }
	release := func(answer int) request {
		return request{http.MethodPut, leases + "/one", answer, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","spec":{"holderIdentity":""}}`}
	}
	cases := map[string]struct {
		reason   string
		before   []request
		rejected bool
	}{
		"Changed":   {"Another replica may lead.", []request{renewal(200), renewal(409)}, true},
		"Deleted":   {"Another replica may have created the lease since.", []request{renewal(200), renewal(404)}, true},
		"Again":     {"It was only edited: the next renewal is accepted.", []request{renewal(200), renewal(409), renewal(200)}, false},
		"Recreated": {"No other replica was faster.", []request{renewal(200), renewal(404), creation(201)}, false},
		"Overtaken": {"Another replica was.", []request{renewal(200), renewal(404), creation(409)}, true},
		"Released":  {"Another replica may lead at once.", []request{renewal(200), release(200)}, true},
		"Broken":    {"The API server could not answer: the time decides.", []request{renewal(200), renewal(500)}, false},
		"NeverLed":  {"It did not get the lease, and never wrote as a leader.", []request{renewal(409)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := New("ours", "one", renewDeadline)
			send := func(r request) error {
				sent, err := http.NewRequestWithContext(t.Context(), r.method, r.path, strings.NewReader(r.body))
				if err != nil {
					return err
				}
				sent.Header.Set("Content-Type", "application/json")
				response, err := (&gate{answering(r.answer), f}).RoundTrip(sent)
				if err == nil {
					_ = response.Body.Close()
				}

				return err
			}
			for _, r := range tc.before {
				if err := send(r); err != nil {
					t.Fatalf("%s\n%s %s: %v", tc.reason, r.method, r.path, err)
				}
			}
			for r, writes := range map[request]bool{
				{method: http.MethodPost, path: object, answer: http.StatusOK}:                                                    true,
				{method: http.MethodGet, path: object, answer: http.StatusOK}:                                                     false,
				{method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", answer: http.StatusCreated}: false,
			} {
				err := send(r)
				if want := tc.rejected && writes; (err != nil) != want {
					t.Errorf("%s\n%s %s: got error %v, want one: %t", tc.reason, r.method, r.path, err, want)
				}
			}
		})
	}
}

// leases answers requests for one lease.
type leases struct{ lease []byte }

func (l leases) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(l.lease); err != nil {
		return nil, err
	}

	return w.Result(), nil
}

// client-go itself renews and releases a lease, in both formats.
func TestFenceOfAReleasedLease(t *testing.T) {
	for _, format := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		f := New("ours", "one", renewDeadline)
		api := leases{[]byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"namespace":"ours","name":"one"}}`)}
		config := f.Around(&rest.Config{Host: "http://localhost", Transport: api, ContentConfig: rest.ContentConfig{ContentType: format}})
		client, err := coordinationclient.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "ours", Name: "one"}, Client: client}
		if _, _, err := lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			holder, want string
		}{{"me", ""}, {"", leaseReleased}} {
			if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: tc.holder, LeaseDurationSeconds: 1}); err != nil {
				t.Fatal(err)
			}
			write := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/namespaces/x/configmaps", nil)
			if got := f.rejects(write, time.Now()); got != tc.want {
				t.Errorf("%s: after a lease of %q, a write is rejected because %q, want %q", format, tc.holder, got, tc.want)
			}
		}
	}
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
			f := New("ours", "one", renewDeadline)
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
