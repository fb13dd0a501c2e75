package cluster

import (
	"context"
	"net"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// A Relay is a TCP way to the API server that can lose everything without a sign: neither side is
// told, as by a firewall that drops packets.
type Relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns map[*link]bool
}

// A link is one connection. A lost one stays open and carries nothing any more.
type link struct {
	client, server net.Conn

	mu   sync.Mutex
	lost bool
}

// NewRelay starts one, which ends with the test.
func (u *Up) NewRelay(t testing.TB) *Relay {
	t.Helper()
	to, _, err := u.address()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: listener, to: to, conns: map[*link]bool{}}
	go r.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		for l := range r.conns {
			l.close()
		}
	})

	return r
}

// Partition loses all connections that exist, for good, and those that are opened until Heal.
func (r *Relay) Partition() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	for l := range r.conns {
		l.lose()
	}
}

// Heal lets new connections through.
func (r *Relay) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.to)
		if err != nil { // there is no API server
			_ = client.Close()

			continue
		}
		l := &link{client: client, server: server}
		r.mu.Lock()
		l.lost = r.cut
		r.conns[l] = true
		r.mu.Unlock()
		go r.carry(l, client, server)
		go r.carry(l, server, client)
	}
}

// carry copies one direction. An end that is reached on a lost link is not reported to the other
// side.
func (r *Relay) carry(l *link, from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if l.isLost() {
			if err != nil {
				return
			}

			continue
		}
		if n > 0 && err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil && !l.isLost() {
			r.end(l)

			return
		}
	}
}

// end closes both sides of a link.
func (r *Relay) end(l *link) {
	l.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, l)
}

func (l *link) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
}

func (l *link) isLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.lost
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// Behind returns the flag with which a manager with these flags and the chart's permissions
// reaches the API server by a relay.
func (u *Up) Behind(ctx context.Context, r *Relay, flags ...string) (string, error) {
	account, err := u.Grant(ctx, flags...)
	if err != nil {
		return "", err
	}
	path, err := u.KubeconfigOf(ctx, account)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return "", err
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + r.listener.Addr().String()
	}
	path, err = u.write(config)

	return "--kubeconfig=" + path, err
}
