package network

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Rates are the probabilities of faults. One random number per request decides; without rates,
// there are no faults.
type Rates struct {
	// Delay is the longest that a request is held up, before it reaches the server.
	Delay time.Duration
	// Drop is the share of requests whose connection breaks before the server has
	// seen them, Swallow of those that were carried out and whose answer is lost.
	Drop, Swallow float64
	// Busy is the share that is answered with 429 and Retry-After, Broken with 500.
	Busy, Broken float64
	// Race is the share of updates and patches before which another client writes to the object, so
	// that the server answers 409 if they were on condition of a version. Conflict is the share
	// that is answered with 409 although no client did.
	Race, Conflict float64
	// Watch is the longest that a watch lives. Zero: as long as it likes.
	Watch time.Duration
	// NoBookmarks has watches without bookmarks, except for the one after the initial events.
	NoBookmarks bool
}

// A Proxy is a way to the API server on which requests can be late, or lost.
type Proxy struct {
	// Kubeconfig of the clients of the proxy.
	Kubeconfig string

	server  *httptest.Server
	forward *httputil.ReverseProxy
	mu      sync.Mutex
	random  *rand.Rand
	rates   Rates
	counts  map[string]int
	watches int
	inWay   map[*obstacle]bool
	traffic traffic
}

// NewProxy starts one, which ends with the test, after what was started later. With a
// token it speaks for whom that belongs to, else for the administrator. The
// faults are the same for the same seed and the same requests in the same order.
func NewProxy(t testing.TB, to *rest.Config, token string, seed uint64) *Proxy {
	t.Helper()
	p := &Proxy{
		Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"),
		random:     rand.New(rand.NewPCG(seed, seed)), counts: map[string]int{}, inWay: map[*obstacle]bool{},
	}
	p.server = httptest.NewUnstartedServer(p)
	// Connections that wait for the next request would be counted as leaks.
	p.server.Config.SetKeepAlivesEnabled(false)
	t.Cleanup(func() {
		p.Cut()
		p.server.Close()
	})
	if err := p.start(to, token); err != nil {
		t.Fatal(err)
	}

	return p
}

func (p *Proxy) start(to *rest.Config, token string) error {
	config := clientcmdapi.NewConfig()
	c, user := &clientcmdapi.Cluster{}, &clientcmdapi.AuthInfo{Token: token}
	if token == "" {
		p.server.Start()
	} else {
		// Tokens are not sent where every user could read them, and the administrator's certificate
		// stays out of it.
		p.server.StartTLS()
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
		to = rest.AnonymousClientConfig(to)
	}
	c.Server = p.server.URL
	transport, err := rest.TransportFor(to)
	if err != nil {
		return err
	}
	target, err := url.Parse(to.Host)
	if err != nil {
		return err
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1, // a watch is to see events when they happen
		ModifyResponse: p.hinder,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		// A server that is away refuses connections; so does this one.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	config.Clusters["proxy"], config.AuthInfos["proxy"] = c, user
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", AuthInfo: "proxy"}
	config.CurrentContext = "proxy"

	return clientcmd.WriteToFile(*config, p.Kubeconfig)
}

// Set changes the rates. Watches that are open end if the new one reports how long one
// may live.
func (p *Proxy) Set(w Rates) {
	p.mu.Lock()
	p.rates = w
	p.mu.Unlock()
	if w.Watch > 0 {
		p.Cut()
	}
}

// Cut breaks everything that is under way, watches above all.
func (p *Proxy) Cut() { p.server.CloseClientConnections() }

// Counts reports how often it did what to requests, by the names of Rates.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return maps.Clone(p.counts)
}

// Watches is how many are open.
func (p *Proxy) Watches() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.watches
}

// ServeHTTP carries a request, or does not.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.arrived(r)
	if code := p.passes(r); code != 0 {
		answer(w, code, reasons[code])

		return
	}
	if r.URL.Query().Get("watch") != "" {
		p.watch(w, r)

		return
	}
	delay, what := p.draw(r.Method)
	if p.swallows(r) {
		what = "swallow"
	}
	select {
	case <-time.After(delay):
		p.carry(w, r, what)
	case <-r.Context().Done():
	}
}

// reasons are what the API server reports with the codes of obstacles.
var reasons = map[int]metav1.StatusReason{
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
}

// carry does to a request what was drawn for it.
func (p *Proxy) carry(w http.ResponseWriter, r *http.Request, what string) {
	switch what {
	case "drop":
		panic(http.ErrAbortHandler)
	case "swallow":
		p.forward.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
		panic(http.ErrAbortHandler)
	case "busy":
		answer(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	case "broken":
		answer(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case "race":
		p.touch(r)
		p.forward.ServeHTTP(w, r)
	case "conflict":
		answer(w, http.StatusConflict, metav1.StatusReasonConflict)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// watch carries a watch, for as long as one may live.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.watches++
	life := time.Duration(0)
	if p.rates.Watch > 0 {
		life = time.Duration(p.random.Int64N(int64(p.rates.Watch)))
		p.counts["watch"]++
	}
	if p.rates.NoBookmarks {
		r = withoutBookmarks(r)
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watches--
	}()
	ctx := r.Context()
	if life > 0 {
		limited, cancel := context.WithTimeout(ctx, life)
		defer cancel()
		ctx = limited
	}
	p.forward.ServeHTTP(w, r.WithContext(ctx))
}

// draw decides what becomes of a request.
func (p *Proxy) draw(method string) (delay time.Duration, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.rates
	if w.Delay > 0 {
		delay = time.Duration(p.random.Int64N(int64(w.Delay)))
		p.counts["delay"]++
	}
	if method != http.MethodPut && method != http.MethodPatch {
		w.Race, w.Conflict = 0, 0
	}
	x := p.random.Float64()
	for _, choice := range []struct {
		what  string
		share float64
	}{{"drop", w.Drop}, {"swallow", w.Swallow}, {"busy", w.Busy}, {"broken", w.Broken}, {"race", w.Race}, {"conflict", w.Conflict}} {
		if x < choice.share {
			p.counts[choice.what]++

			return delay, choice.what
		}
		x -= choice.share
	}

	return delay, ""
}

// touch writes something to the object that a request is about. If there is none yet, no client can
// have written to it.
func (p *Proxy) touch(r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/status")
	p.mu.Lock()
	body := fmt.Sprintf(`{"metadata":{"annotations":{"test.arbor/touched":"%d"}}}`, p.random.Int64())
	p.mu.Unlock()
	other := httptest.NewRequestWithContext(context.WithoutCancel(r.Context()), http.MethodPatch, path+"?fieldManager=somebody", strings.NewReader(body))
	other.Header.Set("Content-Type", "application/merge-patch+json")
	p.forward.ServeHTTP(httptest.NewRecorder(), other)
}

// answer has the form of the API server.
func answer(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	data, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("the proxy answers %s", strings.ToLower(http.StatusText(code))),
	})
	if err == nil {
		_, _ = w.Write(data)
	}
}
