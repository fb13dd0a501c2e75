package serving

import (
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/arbor-control/arbor/internal/pki"
)

// A leaf is the certificate that this replica shows.
type leaf struct {
	tls    *tls.Certificate
	signer *pki.CA
	life   time.Duration
	renew  time.Time
}

// newLeaf signs a certificate for the given hosts.
func newLeaf(a authority, hosts []string, now time.Time) (*leaf, error) {
	signer := a.signer(now)
	r := pki.Request{CommonName: hosts[0], Now: now, Life: part(a.life, leafLife)}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			r.IPs = append(r.IPs, ip)
		} else {
			r.DNSNames = append(r.DNSNames, h)
		}
	}
	pair, err := signer.Issue(r)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the new certificate: %w", err)
	}
	life := cert.Leaf.NotAfter.Sub(now)

	return &leaf{tls: &cert, signer: signer, life: life, renew: now.Add(part(life, renewAfter))}, nil
}

// good reports whether the leaf may still be used: it is young enough, and the expected authority
// signed it.
func (l *leaf) good(a authority, now time.Time) bool {
	return l != nil && now.Before(l.renew) && l.signer.Cert.Equal(a.signer(now).Cert)
}
