package manager_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/arbor-control/arbor/internal/pki"
	"github.com/arbor-control/arbor/test/cluster"
)

// A manager whose certificates are given serves webhooks before its caches have read the
// cluster, and could only reject what they are asked about. It is not ready until then, so that
// no Service sends it requests.
func TestReadyAfterCaches(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.NewCA("given", time.Now(), time.Hour)
	must(t, err)
	pair, err := ca.Issue(pki.Request{CommonName: "localhost", IPs: []net.IP{net.ParseIP("127.0.0.1")}, Now: time.Now(), Life: time.Hour})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Cert, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))

	p := server.NewProxy(t, "", 0)
	held, release := p.Trap(t, `^(GET|WATCH) /apis/plexaubnet\.io/v1alpha1/subnets$`, 0)
	m := server.LaunchManager(t, "--kubeconfig="+p.Kubeconfig, "--controllers=subnets", "--webhook-cert-dir="+dir)
	select {
	case <-held:
	case <-m.Done():
		t.Fatal("the manager has ended")
	}
	cluster.Eventually(t, "its webhooks are served", func() error {
		_, body, err := scrape(t.Context(), "http://"+m.Health+"/readyz?verbose", "")
		if err != nil || !strings.Contains(body, "[+]webhook-server ok") {
			return errors.Join(errors.New(body), err)
		}

		return nil
	})
	code, body, err := scrape(t.Context(), "http://"+m.Health+"/readyz?verbose", "")
	if err != nil || code == http.StatusOK || !strings.Contains(body, "[-]caches failed") {
		t.Errorf("it is ready before it knows any Subnet: %d, %v\n%s", code, err, body)
	}
	if code, _, err := scrape(t.Context(), "http://"+m.Health+"/healthz", ""); err != nil || code != http.StatusOK {
		t.Errorf("it is not healthy while it reads the cluster: %d, %v", code, err)
	}
	release()
	if err := m.Await(); err != nil {
		t.Fatal(fmt.Errorf("with the caches synced: %w", err))
	}
}
