package monitoring_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A proxy stands between a manager and the API server, and gets in the way when it
// is told to. Tests themselves speak to the API server.
type proxy struct {
	kubeconfig string

	mu sync.Mutex
	in map[*interference]bool
}

// An interference is about requests that are like "PATCH /api/v1/…".
type interference struct {
	like *regexp.Regexp
	// over is closed when it is.
	over chan struct{}
	// refuse says what becomes of a request: it may wait, and then returns whether
	// it is refused.
	refuse func(context.Context) bool
}

// newProxy starts one, with a kubeconfig that leads to it.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	to, err := url.Parse(server.Config.Host)
	must(t, err)
	transport, err := rest.TransportFor(server.Config)
	must(t, err)
	p := &proxy{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), in: map[*interference]bool{}}
	onwards := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1, // a watch is to see events when they happen
	}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.refuses(r) {
			onwards.ServeHTTP(w, r)

			return
		}
		status := apierrors.NewForbidden(schema.GroupResource{}, r.URL.Path, nil).ErrStatus
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}))
	t.Cleanup(func() {
		listener.CloseClientConnections() // of those that watch
		listener.Close()
	})
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: listener.URL}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"proxy": {}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy", AuthInfo: "proxy"}},
		CurrentContext: "proxy",
	}, p.kubeconfig))

	return p
}

func (p *proxy) refuses(r *http.Request) bool {
	p.mu.Lock()
	var met []*interference
	for i := range p.in {
		if i.like.MatchString(r.Method + " " + r.URL.Path) {
			met = append(met, i)
		}
	}
	p.mu.Unlock()
	refused := false
	for _, i := range met {
		refused = i.refuse(r.Context()) || refused
	}

	return refused
}

// interfere returns how to end it. It ends with the test, too.
func (p *proxy) interfere(t *testing.T, like string, refuse func(context.Context, <-chan struct{}) bool) (end func()) {
	t.Helper()
	i := &interference{like: regexp.MustCompile(like), over: make(chan struct{})}
	i.refuse = func(ctx context.Context) bool { return refuse(ctx, i.over) }
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in[i] = true
	end = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.in, i)
		close(i.over)
	})
	t.Cleanup(end)

	return end
}

// forbid has requests refused, as those of somebody without the right are.
func (p *proxy) forbid(t *testing.T, like string) (allow func()) {
	t.Helper()

	return p.interfere(t, like, func(context.Context, <-chan struct{}) bool { return true })
}

// hold has requests wait until it ends.
func (p *proxy) hold(t *testing.T, like string) (release func()) {
	t.Helper()

	return p.interfere(t, like, func(ctx context.Context, over <-chan struct{}) bool {
		select {
		case <-over:
		case <-ctx.Done():
		}

		return false
	})
}

// slow has requests take some time.
func (p *proxy) slow(t *testing.T, like string, by time.Duration) (hurry func()) {
	t.Helper()

	return p.interfere(t, like, func(ctx context.Context, over <-chan struct{}) bool {
		select {
		case <-time.After(by):
		case <-over:
		case <-ctx.Done():
		}

		return false
	})
}
