package manager

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"
)

func TestDrainTime(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Options)
		want   time.Duration
	}{
		"Service":  {"Endpoints of a Service are updated later than a process ends.", func(o *Options) { o.WebhookService = "s" }, 5 * time.Second},
		"Host":     {"A host has no other replica, and arbor up ends at once.", func(*Options) {}, 0},
		"Webhooks": {"Without webhooks there is nothing to serve.", func(o *Options) { o.WebhookService, o.Webhooks = "s", false }, 0},
		"Off":      {"The time can be none.", func(o *Options) { o.WebhookService, o.WebhookDrain = "s", 0 }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			tc.change(&o)
			if got := o.drainTime(); got != tc.want {
				t.Errorf("%s\ngot %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// A draining manager rejects new requests and finishes those that it has.
func TestDrainAnswers(t *testing.T) {
	d := newDrain(time.Hour)
	var (
		canceled error
		bounded  bool
	)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		canceled = r.Context().Err()
		_, bounded = r.Context().Deadline()
	})
	ask := func(h http.Handler) *httptest.ResponseRecorder {
		// The end of the server ends the contexts of its requests.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))

		return w
	}
	for _, draining := range []bool{false, true} {
		if draining {
			d.begin()
		}
		if (d.ready(nil) != nil) != draining {
			t.Errorf("draining %t: ready is %v", draining, d.ready(nil))
		}
		// A request that waits for its turn ends with its client.
		if ask(d.around(time.Minute, handler)); canceled == nil || !bounded {
			t.Errorf("draining %t: a request that waits has the error %v, and a deadline: %t", draining, canceled, bounded)
		}
		admission := ask(d.around(time.Minute, lasting(handler)))
		if admission.Code != http.StatusOK || (admission.Header().Get("Connection") == "close") != draining || canceled != nil || !bounded {
			t.Errorf("draining %t: admission is answered with %d, %v, %v", draining, admission.Code, admission.Header(), canceled)
		}
		if other := ask(d.closed(handler)); (other.Code == http.StatusServiceUnavailable) != draining {
			t.Errorf("draining %t: others are answered with %d", draining, other.Code)
		}
	}
	ended := make(chan struct{})
	close(ended)
	d.wait(ended) // though it takes an hour
}

// A client that asks a manager that drains leaves its connection, so that its next request can
// reach another replica: in HTTP/1 by a header, in HTTP/2, which has no such header, by GOAWAY.
func TestDrainLeavesConnections(t *testing.T) {
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	admission := func(d *drain, h http.Handler) http.Handler { return d.around(time.Minute, lasting(h)) }
	cases := map[string]struct {
		reason string
		http2  bool
		around func(*drain, http.Handler) http.Handler
		code   int
	}{
		"Admission1": {"The API server may use HTTP/1.", false, admission, http.StatusOK},
		"Admission2": {"It uses HTTP/2.", true, admission, http.StatusOK},
		"Closed1":    {"A retry on this connection would get the same answer.", false, (*drain).closed, http.StatusServiceUnavailable},
		"Closed2":    {"So would one in HTTP/2.", true, (*drain).closed, http.StatusServiceUnavailable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDrain(time.Hour)
			server := httptest.NewUnstartedServer(tc.around(d, answer))
			server.EnableHTTP2 = tc.http2
			server.StartTLS()
			defer server.Close()
			if reused, _ := ask(t, server); reused {
				t.Error("the first request has a connection already")
			}
			if reused, _ := ask(t, server); !reused {
				t.Errorf("%s\nbefore the drain, a connection is used once", tc.reason)
			}
			d.begin()
			if _, code := ask(t, server); code != tc.code {
				t.Errorf("%s\nthe answer is %d, want %d", tc.reason, code, tc.code)
			}
			for deadline := time.Now().Add(5 * time.Second); ; {
				reused, _ := ask(t, server)
				if !reused {
					return
				}
				// GOAWAY may arrive after the next request is sent; a header cannot.
				if !tc.http2 || time.Now().After(deadline) {
					t.Fatalf("%s\nthe connection is used again after an answer of the drain", tc.reason)
				}
			}
		})
	}
}

// ask sends a request, and returns whether it used the connection of an earlier one, and the
// code of the answer.
func ask(t *testing.T, server *httptest.Server) (reused bool, code int) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if want := map[bool]int{false: 1, true: 2}[server.EnableHTTP2]; response.ProtoMajor != want {
		t.Errorf("the answer is HTTP/%d, want HTTP/%d", response.ProtoMajor, want)
	}

	return reused, response.StatusCode
}
