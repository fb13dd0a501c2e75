package chart_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// A late is a way to the API server on which events of some kinds can be held up,
// as they are on any busy cluster. Requests go through it as they are.
type late struct {
	url       string
	authority []byte

	mu   sync.Mutex
	held map[string]chan struct{}
}

func newLate(t *testing.T) *late {
	t.Helper()
	// Whoever asks brings a token; the administrator's certificate stays out of it.
	transport, err := rest.TransportFor(&rest.Config{Host: server.Config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: server.Config.CAData, CAFile: server.Config.CAFile}})
	must(t, err)
	target, err := url.Parse(server.Config.Host)
	must(t, err)
	l := &late{held: map[string]chan struct{}{}}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") != "" {
				r.Body = &events{ReadCloser: r.Body, late: l, kind: path.Base(r.Request.URL.Path)}
			}

			return nil
		},
	}
	// Tokens are not sent where everybody could read them.
	s := httptest.NewTLSServer(proxy)
	l.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	l.url = s.URL

	return l
}

// hold keeps events of a kind back, until the returned function is called.
func (l *late) hold(kind string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	l.held[kind] = gate

	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, kind)
		close(gate)
	})
}

// events is the body of a watch.
type events struct {
	io.ReadCloser

	late *late
	kind string
}

func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.late.mu.Lock()
	gate := e.late.held[e.kind]
	e.late.mu.Unlock()
	if gate != nil {
		<-gate
	}

	return n, err
}
