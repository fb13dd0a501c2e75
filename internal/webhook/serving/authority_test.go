package serving

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const life = 24 * time.Hour

var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A replica reads the shared Secret at random times over a year of authorities. Whatever it shows
// must be trusted by an API server that has the current bundle, and also by one that still has an
// older bundle.
func TestNoMomentOfDistrust(t *testing.T) {
	a, err := authority{life: life}.replaced(born)
	if err != nil {
		t.Fatal(err)
	}
	var shown *leaf
	trusted := [][]byte{a.bundle()} // newest last
	rotations := 0
	for now := born; now.Before(born.Add(20 * life)); now = now.Add(17 * time.Minute) {
		next, changed, err := a.next(now)
		if err != nil {
			t.Fatal(err)
		}
		if changed && !next.current.Cert.Equal(a.current.Cert) {
			rotations++
		}
		a = roundTrip(t, next)
		trusted = append(trusted, a.bundle())
		if !shown.good(a, now) {
			if shown, err = newLeaf(a, []string{"127.0.0.1"}, now); err != nil {
				t.Fatal(err)
			}
		}
		// The previous bundle is at least one look old.
		for _, bundle := range trusted[max(0, len(trusted)-2):] {
			if err := verify(shown, bundle, now); err != nil {
				t.Fatalf("at %s, after %d rotations: %v", now, rotations, err)
			}
		}
	}
	if rotations < 25 {
		t.Errorf("%d rotations in 20 lives: it should be about 30", rotations)
	}
}

func TestNext(t *testing.T) {
	fresh, err := authority{life: life}.replaced(born)
	if err != nil {
		t.Fatal(err)
	}
	rotated, changed, err := fresh.next(born.Add(17 * time.Hour))
	if err != nil || !changed {
		t.Fatal(changed, err)
	}

	cases := map[string]struct {
		reason   string
		from     authority
		at       time.Time
		changed  bool
		previous bool
		old      bool // the previous one signs
	}{
		"Young":    {"Nothing happens in the first two thirds of its life.", fresh, born.Add(15 * time.Hour), false, false, false},
		"Due":      {"Then it is replaced, and goes on signing until the new one has settled.", fresh, born.Add(17 * time.Hour), true, true, true},
		"Overdue":  {"One that ended while nobody looked is not trusted any more.", fresh, born.Add(25 * time.Hour), true, false, false},
		"Settling": {"Trusted, but not yet used.", rotated, born.Add(17*time.Hour + time.Minute), false, true, true},
		"Settled":  {"Used, with the old one still trusted.", rotated, born.Add(17*time.Hour + 10*time.Minute), false, true, false},
		"Dropped":  {"When the old one has ended it is forgotten.", rotated, born.Add(24*time.Hour + time.Second), true, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, changed, err := tc.from.next(tc.at)
			if err != nil {
				t.Fatal(err)
			}
			if changed != tc.changed || (got.previous != nil) != tc.previous {
				t.Errorf("%s\nchanged %t, previous %t; want %t, %t", tc.reason, changed, got.previous != nil, tc.changed, tc.previous)
			}
			if old := got.signer(tc.at) != got.current; old != tc.old {
				t.Errorf("%s\nthe old one signs: %t, want %t", tc.reason, old, tc.old)
			}
		})
	}
}

func TestParseAuthority(t *testing.T) {
	a, err := authority{life: life}.replaced(born)
	if err != nil {
		t.Fatal(err)
	}
	a, err = a.replaced(born)
	if err != nil {
		t.Fatal(err)
	}
	data, err := a.data()
	if err != nil {
		t.Fatal(err)
	}
	without := func(key string) map[string][]byte {
		d := map[string][]byte{}
		for k, v := range data {
			if k != key {
				d[k] = v
			}
		}

		return d
	}

	cases := map[string]struct {
		reason       string
		data         map[string][]byte
		ok, previous bool
	}{
		"Whole":         {"Both are read.", data, true, true},
		"NoPreviousKey": {"A previous one without a key is as good as none.", without(previousKey), true, false},
		"NoKey":         {"A current one without a key cannot sign.", without(currentKey), false, false},
		"Empty":         {"An empty Secret holds nothing.", nil, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseAuthority(tc.data, life)
			if diff := cmp.Diff([]bool{tc.ok, tc.previous}, []bool{err == nil, got.previous != nil}); diff != "" {
				t.Errorf("%s\n(-want +got) readable, with previous:\n%s", tc.reason, diff)
			}
		})
	}
}

// roundTrip is the way through the Secret.
func roundTrip(t *testing.T, a authority) authority {
	t.Helper()
	data, err := a.data()
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseAuthority(data, a.life)
	if err != nil {
		t.Fatal(err)
	}

	return got
}

func verify(l *leaf, bundle []byte, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := l.tls.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "127.0.0.1"})

	return err
}

// Replicas and the API server have different clocks. Whatever a replica shows must be trusted by
// the API server, also if another replica with a third clock made the authority, and replicas
// must agree on the authority.
func TestSkewedClocks(t *testing.T) {
	const skew = 10 * time.Minute
	for _, maker := range []time.Duration{-skew, 0, skew} {
		for _, shower := range []time.Duration{-skew, 0, skew} {
			a, err := authority{life: life}.replaced(born.Add(maker))
			if err != nil {
				t.Fatal(err)
			}
			var shown *leaf
			for now := born; now.Before(born.Add(2 * life)); now = now.Add(7 * time.Minute) {
				for _, clock := range []time.Duration{maker, shower} { // both look at the Secret
					if a, _, err = a.next(now.Add(clock)); err != nil {
						t.Fatal(err)
					}
				}
				if _, changed, _ := a.next(now.Add(maker)); changed {
					t.Fatalf("at %s, with clocks %s and %s: replicas overwrite the authority of each other", now, maker, shower)
				}
				if !shown.good(a, now.Add(shower)) {
					if shown, err = newLeaf(a, []string{"127.0.0.1"}, now.Add(shower)); err != nil {
						t.Fatal(err)
					}
				}
				if err := verify(shown, a.bundle(), now); err != nil {
					t.Fatalf("at %s, with clocks %s and %s: %v", now, maker, shower, err)
				}
			}
		}
	}
}
