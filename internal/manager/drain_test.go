package manager

import (
	"context"
	"net/http"
	"net/http/httptest"
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

// What a manager that drains answers.
func TestDrainAnswers(t *testing.T) {
	d := newDrain(time.Hour)
	var canceled error
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { canceled = r.Context().Err() })
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
		admission := ask(d.around(handler))
		if admission.Code != http.StatusOK || (admission.Header().Get("Connection") == "close") != draining || canceled != nil {
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
