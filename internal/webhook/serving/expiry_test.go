package serving

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestExpiry has a keeper that has looked once, at a certificate of its own and at
// the authority.
func TestExpiry(t *testing.T) {
	a, err := authority{life: life}.replaced(born)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLeaf(a, []string{"127.0.0.1"}, born)
	if err != nil {
		t.Fatal(err)
	}
	k := New(nil, Options{Life: life})
	if got := k.Certificates(); got != nil {
		t.Errorf("there is no certificate yet, and there are %v", got)
	}
	k.authority.Store(&a)
	k.leaf.Store(l)
	want := []Certificate{
		{Name: "authority", Expiry: born.Add(life), Life: life},
		{Name: "serving", Expiry: born.Add(life / 4), Life: life / 4},
	}
	if diff := cmp.Diff(want, k.Certificates()); diff != "" {
		t.Errorf("Certificates(): -want, +got:\n%s", diff)
	}
	// It is renewed when a third of its life is left, as the alert takes for granted.
	for _, due := range []time.Duration{want[0].Expiry.Sub(a.renewal()) * 3, want[1].Expiry.Sub(l.renew) * 12} {
		if (due - life).Abs() > time.Second {
			t.Errorf("a third of the life, at renewal, is a third of %s", due)
		}
	}
}

func TestFileCertificates(t *testing.T) {
	a, err := authority{life: life}.replaced(born)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		data   []byte
		want   []Certificate
	}{
		"Certificate": {
			reason: "What stands in it is told.",
			data:   a.current.CertPEM(),
			want:   []Certificate{{Name: "serving", Expiry: a.current.Cert.NotAfter, Life: a.current.Cert.NotAfter.Sub(a.current.Cert.NotBefore)}},
		},
		"Missing": {reason: "What is not there ends never."},
		"Text":    {reason: "What is no certificate has no end.", data: []byte("nothing")},
		"Damaged": {reason: "Neither has what was one.", data: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.data != nil {
				if err := os.WriteFile(filepath.Join(dir, "tls.crt"), tc.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, FileCertificates(dir)); diff != "" {
				t.Errorf("%s\nFileCertificates(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
