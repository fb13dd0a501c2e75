package network

import (
	"context"
	"net"
	"sync"
	"testing"
)

// A Relay is a TCP way to the API server that can lose everything without a sign: neither side is
// notified, as by a firewall that drops packets.
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

// NewRelay starts one to an address, which ends with the test.
func NewRelay(t testing.TB, to string) *Relay {
	t.Helper()
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

// Address is where the relay listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

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
