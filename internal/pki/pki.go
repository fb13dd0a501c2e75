// Package pki makes the few certificates that Arbor needs: the embedded
// control plane's own, and those of the admission webhooks. Keys are ECDSA
// P-256; everything is PEM. It reads no clock and no files.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	certBlock = "CERTIFICATE"
	keyBlock  = "EC PRIVATE KEY"

	// A certificate's life begins before now, so that a peer whose clock is behind does not
	// reject it: by a quarter of its life, within these limits. Kubernetes' own certificates
	// begin an hour early, too.
	minSkew, maxSkew = 5 * time.Minute, time.Hour
)

// A CA signs certificates.
type CA struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// A Request is the content of a certificate.
type Request struct {
	CommonName    string
	Organizations []string
	DNSNames      []string
	IPs           []net.IP
	Now           time.Time
	Life          time.Duration
}

// A Pair is a certificate and its key, in PEM.
type Pair struct {
	Cert, Key []byte
}

// NewCA makes a certificate authority that lives from now for the given time.
func NewCA(name string, now time.Time, life time.Duration) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}

	template, err := newTemplate(Request{CommonName: name, Now: now, Life: life})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageCRLSign

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot make certificate authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read back certificate authority %s: %w", name, err)
	}

	return &CA{Cert: cert, key: key}, nil
}

// Issue makes a certificate for both ends of a TLS connection. It never
// outlives the authority.
func (c *CA) Issue(r Request) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot make a key: %w", err)
	}

	template, err := newTemplate(r)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if template.NotAfter.After(c.Cert.NotAfter) {
		template.NotAfter = c.Cert.NotAfter
	}

	der, err := x509.CreateCertificate(rand.Reader, template, c.Cert, key.Public(), c.key)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot sign certificate %s: %w", r.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}

	return Pair{Cert: encode(certBlock, der), Key: keyPEM}, nil
}

// Pair returns the authority's own certificate and key.
func (c *CA) Pair() (Pair, error) {
	key, err := encodeKey(c.key)
	if err != nil {
		return Pair{}, err
	}

	return Pair{Cert: c.CertPEM(), Key: key}, nil
}

// CertPEM returns the authority's certificate.
func (c *CA) CertPEM() []byte {
	return encode(certBlock, c.Cert.Raw)
}

// ParseCA reads an authority back. Key and certificate must belong together.
func ParseCA(p Pair) (*CA, error) {
	cert, err := parseCert(p.Cert)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(p.Key)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("certificate and key do not belong together")
	}
	if !cert.IsCA {
		return nil, errors.New("certificate is not a certificate authority")
	}

	return &CA{Cert: cert, key: key}, nil
}

// NewKey makes a private key for signing tokens.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make a key: %w", err)
	}

	return encodeKey(key)
}

// encodeKey writes a private key in the form that everything in Kubernetes
// reads (its readers of token keys know no PKCS #8 for this kind of key).
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}

	return encode(keyBlock, der), nil
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != keyBlock {
		return nil, errors.New("not a PEM private key")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read private key: %w", err)
	}

	return key, nil
}

func parseCert(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != certBlock {
		return nil, errors.New("not a PEM certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read certificate: %w", err)
	}

	return cert, nil
}

func newTemplate(r Request) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("cannot make a serial number: %w", err)
	}

	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		DNSNames:     r.DNSNames,
		IPAddresses:  r.IPs,
		NotBefore:    r.Now.Add(-min(max(r.Life/4, minSkew), maxSkew)),
		NotAfter:     r.Now.Add(r.Life),
	}, nil
}

func encode(kind string, der []byte) []byte {
	var b bytes.Buffer
	// Writing to a buffer cannot fail.
	_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der})

	return b.Bytes()
}
