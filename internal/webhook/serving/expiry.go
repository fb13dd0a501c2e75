package serving

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Certificate is one that has to be renewed in time.
type Certificate struct {
	// Name is authority or serving.
	Name   string
	Expiry time.Time
	// Life is how long it lives in all. It is due to be renewed when a third of
	// that is left, whether it lives for a year or for a minute, so that one alert
	// fits all.
	Life time.Duration
}

// Expiry reports when certificates expire. It reads them when metrics are collected, so it never
// reports one that was replaced.
type Expiry struct {
	look         func() []Certificate
	expiry, life *prometheus.Desc
}

// NewExpiry returns a collector of the certificates that a function finds.
func NewExpiry(look func() []Certificate) *Expiry {
	labels := []string{"certificate"}

	return &Expiry{
		look: look,
		expiry: prometheus.NewDesc("arbor_webhook_certificate_expiry_timestamp_seconds",
			"When a certificate of the webhooks ends, by certificate (authority, serving).", labels, nil),
		life: prometheus.NewDesc("arbor_webhook_certificate_lifetime_seconds",
			"How long a certificate of the webhooks lives in all, by certificate (authority, serving). It is due to be renewed when a third of that is left.", labels, nil),
	}
}

// Describe is prometheus.Collector's.
func (e *Expiry) Describe(to chan<- *prometheus.Desc) {
	to <- e.expiry
	to <- e.life
}

// Collect is prometheus.Collector's.
func (e *Expiry) Collect(to chan<- prometheus.Metric) {
	for _, c := range e.look() {
		to <- prometheus.MustNewConstMetric(e.expiry, prometheus.GaugeValue, float64(c.Expiry.Unix()), c.Name)
		to <- prometheus.MustNewConstMetric(e.life, prometheus.GaugeValue, c.Life.Seconds(), c.Name)
	}
}

// FileCertificates are those of a directory that another program renews. One that cannot be read is
// left out: the server that uses it reports the error.
func FileCertificates(dir string) []Certificate {
	data, err := os.ReadFile(filepath.Join(dir, "tls.crt"))
	if err != nil {
		return nil
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}

	return []Certificate{{Name: "serving", Expiry: c.NotAfter, Life: c.NotAfter.Sub(c.NotBefore)}}
}
