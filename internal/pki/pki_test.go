package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"github.com/arbor-control/arbor/internal/pki"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestIssue(t *testing.T) {
	ca := newCA(t, 4*time.Hour)

	cases := map[string]struct {
		reason string
		life   time.Duration
		at     time.Time
		host   string
		want   bool
	}{
		"Trusted":      {"A fresh certificate is good for its address.", time.Minute, now, "127.0.0.1", true},
		"SlowClock":    {"A peer whose clock is behind must not reject it.", 4 * time.Hour, now.Add(-59 * time.Minute), "127.0.0.1", true},
		"TooSlow":      {"There is a limit.", 100 * time.Hour, now.Add(-61 * time.Minute), "127.0.0.1", false},
		"ShortLife":    {"A short life begins a little earlier than now.", time.Minute, now.Add(-4 * time.Minute), "127.0.0.1", true},
		"ShortSkew":    {"And not much earlier.", time.Minute, now.Add(-6 * time.Minute), "127.0.0.1", false},
		"Expired":      {"After its life it is refused.", time.Minute, now.Add(2 * time.Minute), "127.0.0.1", false},
		"OtherHost":    {"It speaks for no other host.", time.Minute, now, "example.com", false},
		"NotLonger":    {"It never outlives its authority.", 100 * time.Hour, now.Add(5 * time.Hour), "127.0.0.1", false},
		"WithinParent": {"A life cut short by the authority still works within it.", 100 * time.Hour, now.Add(239 * time.Minute), "127.0.0.1", true},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pair, err := ca.Issue(pki.Request{CommonName: "x", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Now: now, Life: tc.life})
			if err != nil {
				t.Fatal(err)
			}
			leaf, err := tls.X509KeyPair(pair.Cert, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(ca.Cert)
			_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: tc.at, DNSName: tc.host})
			if got := err == nil; got != tc.want {
				t.Errorf("%s\nverified: %t (%v), want %t", tc.reason, got, err, tc.want)
			}
		})
	}
}

func TestParseCA(t *testing.T) {
	mine, other := newCA(t, time.Hour), newCA(t, time.Hour)
	a, err := mine.Pair()
	if err != nil {
		t.Fatal(err)
	}
	b, err := other.Pair()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := mine.Issue(pki.Request{CommonName: "leaf", Now: now, Life: time.Minute})
	if err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason string
		pair   pki.Pair
		ok     bool
	}{
		"RoundTrip":   {"What was written can be read.", a, true},
		"Swapped":     {"A key of another authority would sign what nobody trusts.", pki.Pair{Cert: a.Cert, Key: b.Key}, false},
		"Leaf":        {"A leaf cannot sign.", leaf, false},
		"Empty":       {"A lost Secret value is an error, not a panic.", pki.Pair{}, false},
		"GarbageKey":  {"A damaged key is an error.", pki.Pair{Cert: a.Cert, Key: []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n")}, false},
		"GarbageCert": {"A damaged certificate is an error.", pki.Pair{Cert: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), Key: a.Key}, false},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := pki.ParseCA(tc.pair)
			if got := err == nil; got != tc.ok {
				t.Errorf("%s\nerror: %v, want ok %t", tc.reason, err, tc.ok)
			}
		})
	}
}

func TestNewKey(t *testing.T) {
	a, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	b, err := pki.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(a, b) {
		t.Error("two new keys are the same")
	}
	if block, _ := pem.Decode(a); block == nil || block.Type != "EC PRIVATE KEY" {
		t.Errorf("Kubernetes cannot read this as a token key:\n%s", a)
	}
}

func newCA(t *testing.T, life time.Duration) *pki.CA {
	t.Helper()
	ca, err := pki.NewCA("test", now, life)
	if err != nil {
		t.Fatal(err)
	}

	return ca
}
