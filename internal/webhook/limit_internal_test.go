package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func post(t *testing.T, server *httptest.Server, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // as much as there is

	return answer.StatusCode, string(text)
}

func echo(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	fmt.Fprint(w, n, " ", err)
}

func TestLimiterBodies(t *testing.T) {
	server := httptest.NewServer(NewLimiter(5 * time.Second).Around(http.HandlerFunc(echo)))
	defer server.Close()
	for name, tc := range map[string]struct {
		reason string
		size   int
	}{
		"Empty": {"There may be none.", 0},
		"Small": {"It is passed on.", 100},
		"Large": {"As a whole.", maxBody},
		"Huge":  {"The handler rejects what is too large, so it must get it.", maxBody + 1000},
	} {
		t.Run(name, func(t *testing.T) {
			if code, text := post(t, server, bytes.NewReader(make([]byte, tc.size))); code != http.StatusOK || text != fmt.Sprint(tc.size, " ", nil) {
				t.Errorf("%s\n%d %s", tc.reason, code, text)
			}
		})
	}
}

// A caller that sends its body slowly is answered when the time is over, and its
// memory is free again.
func TestLimiterSlowBody(t *testing.T) {
	l := NewLimiter(5 * time.Second)
	l.read = 100 * time.Millisecond
	server := httptest.NewServer(l.Around(http.HandlerFunc(echo)))
	defer server.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin")
	answer, err := io.ReadAll(conn) // until the server closes it
	if err != nil || !strings.Contains(string(answer), "408") || !strings.Contains(string(answer), "cannot read the request within 100ms") {
		t.Errorf("%s, %v", answer, err)
	}
	if l.open != 0 || l.bytes != 0 || len(l.byHost) != 0 {
		t.Errorf("%d requests, %d bytes", l.open, l.bytes)
	}
}

// The server of the webhooks speaks HTTP/2, and counts requests.
func TestLimiterAsServed(t *testing.T) {
	l := NewLimiter(5 * time.Second)
	l.read = 200 * time.Millisecond
	counted := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "Requests."}, []string{"code"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "request_duration_seconds", Help: "Time."}, nil)
	server := httptest.NewUnstartedServer(promhttp.InstrumentHandlerDuration(seconds, promhttp.InstrumentHandlerCounter(counted, l.Around(http.HandlerFunc(echo)))))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	if code, text := post(t, server, strings.NewReader("body")); code != http.StatusOK || text != "4 <nil>" {
		t.Errorf("%d %s", code, text)
	}
	slow, end := io.Pipe()
	defer end.Close()
	go func() { _, _ = end.Write([]byte("begin")) }() // and nothing more
	if code, text := post(t, server, slow); code != http.StatusRequestTimeout || !strings.Contains(text, "cannot read the request within 200ms") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := post(t, server, strings.NewReader("next")); code != http.StatusOK {
		t.Errorf("the next request of the connection: %d", code)
	}
}

// Requests beyond what is decided at a time wait, and are answered when that takes too
// long.
func TestLimiterConcurrency(t *testing.T) {
	l := NewLimiter(5 * time.Second)
	l.running, l.wait = make(chan struct{}, 2), 50*time.Millisecond
	entered, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(l.Around(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})))
	defer server.Close()
	codes := make(chan int)
	for range 2 {
		go func() {
			code, _ := post(t, server, nil)
			codes <- code
		}()
		<-entered
	}
	if code, text := post(t, server, nil); code != http.StatusTooManyRequests || !strings.Contains(text, "too many requests") {
		t.Errorf("a third one: %d %s", code, text)
	}
	close(leave)
	for range 2 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one that was decided: %d", code)
		}
	}
	go func() { <-entered }()
	if code, _ := post(t, server, nil); code != http.StatusOK {
		t.Errorf("one after them: %d", code)
	}
}

// A caller that waits two seconds gets its answer within them.
func TestLimiterTimeout(t *testing.T) {
	l := NewLimiter(2 * time.Second)
	for range cap(l.running) {
		l.running <- struct{}{}
	}
	server := httptest.NewServer(l.Around(http.NotFoundHandler()))
	defer server.Close()
	started := time.Now()
	code, text := post(t, server, nil)
	if took := time.Since(started); code != http.StatusTooManyRequests || took >= 2*time.Second {
		t.Errorf("%d %s after %s", code, text, took)
	}
}

// One address cannot use what is there for all.
func TestLimiterHosts(t *testing.T) {
	l := NewLimiter(5 * time.Second)
	var held []*holding
	for {
		h, ok := l.enter("10.0.0.1:1")
		if !ok {
			break
		}
		held = append(held, h)
	}
	if len(held) != maxOpenByHost {
		t.Errorf("%d requests from one address", len(held))
	}
	other, ok := l.enter("10.0.0.2:1")
	if !ok {
		t.Fatal("there is nothing left for another address")
	}
	for held[0].grow(1 << 20) {
	}
	if got := held[0].bytes; got != maxBufferedByHost {
		t.Errorf("%d bytes from one address", got)
	}
	if !other.grow(maxBody) {
		t.Error("there is no memory left for another address")
	}
	for _, h := range append(held, other) {
		h.leave()
	}
	if l.open != 0 || l.bytes != 0 || len(l.byHost) != 0 {
		t.Errorf("%d requests, %d bytes, %v", l.open, l.bytes, l.byHost)
	}
}

// A caller that is canceled while it waits leaves nothing behind.
func TestLimiterCanceled(t *testing.T) {
	l := NewLimiter(5 * time.Second)
	l.running = make(chan struct{}) // nothing is ever decided
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		l.Around(http.NotFoundHandler()).ServeHTTP(w, r.WithContext(ctx))
	}))
	defer server.Close()
	cancel()
	if code, _ := post(t, server, nil); code != http.StatusTooManyRequests {
		t.Errorf("got %d", code)
	}
	<-done
	if l.open != 0 {
		t.Errorf("%d requests", l.open)
	}
}

// A caller from one address that has all of its requests decided leaves turns to other addresses.
func TestLimiterTurns(t *testing.T) {
	l := NewLimiter(time.Minute)
	entered, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(l.Around(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.RemoteAddr, "127.0.0.2:") {
			return
		}
		entered <- struct{}{}
		<-leave
	})))
	defer server.Close()
	codes := make(chan int)
	for range maxRunning + 10 {
		go func() {
			code, _ := post(t, server, nil)
			codes <- code
		}()
	}
	for range maxRunningByHost {
		<-entered
	}
	other := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DialContext: other.DialContext, DisableKeepAlives: true}, Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		t.Fatalf("another address waits: %v", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("another address: %s", answer.Status)
	}
	close(leave)
	go func() {
		for range entered { // by the rest of the requests
		}
	}()
	for range maxRunning + 10 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one that waited: %d", code)
		}
	}
	close(entered)
}
