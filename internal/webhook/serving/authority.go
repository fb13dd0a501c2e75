package serving

import (
	"bytes"
	"fmt"
	"time"

	"github.com/arbor-control/arbor/internal/pki"
)

// Keys of the Secret that replicas share.
const (
	currentCert  = "ca.crt"
	currentKey   = "ca.key"
	previousCert = "previous.crt"
	previousKey  = "previous.key"
)

// Parts of an authority's life.
const (
	renewAfter = 2.0 / 3  // replaced when this much of its life is over
	settle     = 1.0 / 24 // a new one is trusted this long before it signs
	leafLife   = 1.0 / 4  // how long a serving certificate lives

	maxSettle = 5 * time.Minute // more than any API server needs to notice
)

// An authority signs serving certificates: the current one, and the previous one for as long as a
// replica may still show a certificate that it signed.
type authority struct {
	life     time.Duration
	current  *pki.CA
	previous *pki.CA
}

// parseAuthority reads the Secret's data. A previous authority that cannot be
// read is as good as none.
func parseAuthority(data map[string][]byte, life time.Duration) (authority, error) {
	current, err := pki.ParseCA(pki.Pair{Cert: data[currentCert], Key: data[currentKey]})
	if err != nil {
		return authority{}, err
	}
	a := authority{life: life, current: current}
	if previous, err := pki.ParseCA(pki.Pair{Cert: data[previousCert], Key: data[previousKey]}); err == nil {
		a.previous = previous
	}

	return a, nil
}

func (a authority) data() (map[string][]byte, error) {
	pair, err := a.current.Pair()
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{currentCert: pair.Cert, currentKey: pair.Key}
	if a.previous != nil {
		if pair, err = a.previous.Pair(); err != nil {
			return nil, err
		}
		data[previousCert], data[previousKey] = pair.Cert, pair.Key
	}

	return data, nil
}

// next returns the authority that should be shared at this time, and whether
// it is another one than a.
func (a authority) next(now time.Time) (authority, bool, error) {
	if now.Before(a.renewal()) {
		if a.previous != nil && now.After(a.previous.Cert.NotAfter) {
			a.previous = nil

			return a, true, nil
		}

		return a, false, nil
	}

	a, err := a.replaced(now)

	return a, true, err
}

// replaced returns a new authority after which a is the previous one.
func (a authority) replaced(now time.Time) (authority, error) {
	fresh, err := pki.NewCA("arbor-webhooks", now, a.life)
	if err != nil {
		return authority{}, fmt.Errorf("cannot make a certificate authority: %w", err)
	}
	previous := a.current
	if previous != nil && now.After(previous.Cert.NotAfter) {
		previous = nil
	}

	return authority{life: a.life, current: fresh, previous: previous}, nil
}

// renewal is when the current authority must be replaced.
func (a authority) renewal() time.Time {
	return a.current.Cert.NotAfter.Add(-part(a.life, 1-renewAfter))
}

// signer is the authority that signs now: the current one when it has been
// trusted long enough, or when there is no other.
func (a authority) signer(now time.Time) *pki.CA {
	if a.previous != nil && now.Before(a.settled()) && now.Before(a.previous.Cert.NotAfter) {
		return a.previous
	}

	return a.current
}

// settled is when the current authority begins to sign.
func (a authority) settled() time.Time {
	born := a.current.Cert.NotAfter.Add(-a.life)

	return born.Add(min(part(a.life, settle), maxSettle))
}

// bundle is what the API server should trust.
func (a authority) bundle() []byte {
	if a.previous == nil {
		return a.current.CertPEM()
	}

	return bytes.Join([][]byte{a.current.CertPEM(), a.previous.CertPEM()}, nil)
}

func part(d time.Duration, f float64) time.Duration {
	return time.Duration(float64(d) * f)
}
