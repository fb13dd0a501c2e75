package chaos_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/internal/pki"
	"github.com/arbor-control/arbor/test/cluster"
)

// webhookTimeout is how long the API server waits for the webhooks of Arbor.
const webhookTimeout = 5 * time.Second

// slowWebhook has the webhooks take some time for every review. Controllers whose own writes go
// through them, those of pools, are slow, or fail and try again; the rest go on.
func slowWebhook(by time.Duration) func(w *world) {
	return func(w *world) {
		w.Helper()
		ca, err := pki.NewCA("slow", time.Now(), time.Hour)
		must(w, err)
		pair, err := ca.Issue(pki.Request{CommonName: "localhost", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Now: time.Now(), Life: time.Hour})
		must(w, err)
		dir := w.TempDir()
		must(w, os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Cert, 0o600))
		must(w, os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))
		w.start([]string{"--webhook-cert-dir=" + dir}) // so that it does not register itself
		delay := &atomic.Int64{}
		w.register(w.managers[0], delay)
		cluster.Eventually(w, "PodGroups are admitted", func() error { return w.admit() })
		delay.Store(int64(by))

		began := time.Now()
		err = w.admit()
		w.Logf("a PodGroup was answered after %s: %v", time.Since(began).Round(10*time.Millisecond), err)
		if by > webhookTimeout && (err == nil || !strings.Contains(err.Error(), "podgroups.admission.arbor")) {
			w.Errorf("with a webhook that takes %s, a PodGroup got: %v", by, err)
		}
		w.Logf("a claim was bound after %s", w.binds().Round(10*time.Millisecond))
		w.underLoad(200)
		delay.Store(0)
		w.start(nil) // registers itself
	}
}

// admit sends a PodGroup through the webhook, without creating it.
func (w *world) admit() error {
	return w.c.Create(w.Context(), group(w.load.ns, w.load.name("dry"), "workers"), client.DryRunAll)
}

// register has the API server call a server in front of a manager, which takes some time for
// every review.
func (w *world) register(m *cluster.Manager, delay *atomic.Int64) {
	w.Helper()
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", m.WebhookPort)})
	forward.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	front := httptest.NewTLSServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(delay.Load())):
			forward.ServeHTTP(to, r)
		case <-r.Context().Done():
		}
	}))
	w.Cleanup(front.Close)
	address, err := url.Parse(front.URL)
	must(w, err)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: names.Arbor}}
	must(w, w.c.Get(w.Context(), client.ObjectKeyFromObject(c), c))
	for i := range c.Webhooks {
		to, err := url.Parse(*c.Webhooks[i].ClientConfig.URL)
		must(w, err)
		to.Host = address.Host
		c.Webhooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new(to.String()), CABundle: bundle}
	}
	must(w, w.c.Update(w.Context(), c))
}

// skewed has managers with a certificate authority of a replica whose clock is ten minutes ahead
// of that of the API server, or behind.
func skewed(w *world) {
	w.Helper()
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		w.end()
		ca, err := pki.NewCA("arbor-webhooks", time.Now().Add(off), 365*24*time.Hour)
		must(w, err)
		pair, err := ca.Pair()
		must(w, err)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: names.WebhookSecret}}
		must(w, w.c.Get(w.Context(), client.ObjectKeyFromObject(secret), secret))
		secret.Data = map[string][]byte{"ca.crt": pair.Cert, "ca.key": pair.Key}
		must(w, w.c.Update(w.Context(), secret))
		w.start(nil)
		cluster.Eventually(w, "PodGroups are admitted", func() error { return w.admit() })
		after := &corev1.Secret{}
		must(w, w.c.Get(w.Context(), client.ObjectKeyFromObject(secret), after))
		if after.ResourceVersion != secret.ResourceVersion {
			w.Errorf("an authority that was made at %s from now is replaced", off)
		}
		w.underLoad(30)
	}
}

// littleMemory gives the manager much less memory than it would like, and a large load: Go
// collects garbage all the time then, and nothing may be given up for it.
func littleMemory(w *world) {
	w.Helper()
	const (
		limit = 40 << 20
		loads = 5
	)
	w.Setenv("GOMEMLIMIT", strconv.Itoa(limit))
	w.start(nil)
	m := w.managers[0]
	if n := m.Sum(w, "go_gc_gomemlimit_bytes"); n != limit {
		w.Fatalf("the limit is %v bytes", n)
	}
	began, peak := time.Now(), 0.0
	see := func() {
		w.revive()
		if memory, err := m.Value("process_resident_memory_bytes"); err == nil {
			peak = max(peak, memory)
		}
	}
	for i := range loads {
		w.load.add(fmt.Sprintf("%s-%d", bulk, i), bulk)
	}
	for i := range loads {
		w.load.awaitReady(fmt.Sprintf("%s-%d", bulk, i), see)
	}
	took := time.Since(began)
	w.underLoad(100)
	for i := range loads {
		w.load.withdraw(fmt.Sprintf("%s-%d", bulk, i), see)
	}
	cpu := m.Sum(w, "process_cpu_seconds_total") / time.Since(began).Seconds()
	w.Logf("with a limit of %d MiB: %d compositions with %d objects each are delivered after %s, at most %.0f MiB, %.0f%% CPU",
		limit>>20, loads, bulkObjects, took.Round(100*time.Millisecond), peak/(1<<20), 100*cpu)
	if w.managers[0] != m {
		w.Error("the manager has ended")
	}
}
