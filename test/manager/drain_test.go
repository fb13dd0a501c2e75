package manager_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/arbor-control/arbor/test/cluster"
)

// drain is the default of --webhook-drain.
const drain = 5 * time.Second

// drained are the flags of a manager behind a Service.
func drained(t *testing.T, c client.Client) []string {
	t.Helper()
	registration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "drained"}}
	// No Service leads to these managers, so the API server must not ask them after the test.
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), registration) })

	return []string{"--leader-elect=true", "--controllers=podgroups", "--webhook-service=drained", "--webhook-configuration=drained"}
}

// A manager that gets SIGTERM releases its lease at once, so that another one leads,
// and serves admission until endpoints are updated: until then the API server sends it
// requests.
func TestDrain(t *testing.T) {
	c := newClient(t)
	forgetLease(t, c)
	args := drained(t, c)
	old := server.StartManager(t, args...)
	first := awaitHolder(t, c, "")
	server.StartManager(t, args...)

	load := startLoad(t, old.WebhookPort)
	load.answered(t, 20)
	terminated := time.Now()
	old.Signal(syscall.SIGTERM)
	released := make(chan time.Duration, 1)
	go func() { released <- awaitRelease(t, c, first, terminated) }()
	cluster.Eventually(t, "it is not ready", func() error {
		if code, _, err := scrape(t.Context(), "http://"+old.Health+"/readyz", ""); err != nil || code == http.StatusOK {
			return fmt.Errorf("status %d: %w", code, errors.Join(err))
		}

		return nil
	})
	if took := time.Since(terminated); took > drain {
		t.Errorf("it was ready for %s", took)
	}
	if code := old.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(terminated); took < drain {
		t.Errorf("it ended after %s", took)
	}
	load.stop()
	for _, f := range load.failures {
		// What is sent at the very end can come too late.
		if since := f.at.Sub(terminated); since < drain-500*time.Millisecond {
			t.Errorf("a request that was sent %s after SIGTERM failed: %v", since, f.err)
		}
	}
	// The lease changes hands while the old manager serves.
	if took := <-released; took > 3*time.Second {
		t.Errorf("the lease was released after %s", took)
	}
}

// A second signal ends a manager that drains.
func TestDrainTwice(t *testing.T) {
	m := server.StartManager(t, drained(t, newClient(t))...)
	began := time.Now()
	m.Signal(syscall.SIGTERM)
	cluster.Eventually(t, "it is not ready", func() error {
		if code, _, err := scrape(t.Context(), "http://"+m.Health+"/readyz", ""); err != nil || code == http.StatusOK {
			return fmt.Errorf("status %d: %w", code, errors.Join(err))
		}

		return nil
	})
	m.Signal(syscall.SIGTERM)
	if m.ExitCode(); time.Since(began) >= drain {
		t.Errorf("it ended after %s", time.Since(began))
	}
}

func awaitRelease(t *testing.T, c client.Client, holder string, since time.Time) time.Duration {
	t.Helper()
	for t.Context().Err() == nil {
		lease := &coordinationv1.Lease{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "arbor-system", Name: "arbor-manager"}, lease)
		if by := lease.Spec.HolderIdentity; err == nil && (by == nil || *by != holder) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}

	return time.Since(since)
}

// A load is a stream of admission requests to one manager.
type load struct {
	mu       sync.Mutex
	good     int
	failures []failure

	cancel context.CancelFunc
	all    sync.WaitGroup
}

type failure struct {
	at  time.Time
	err error
}

// startLoad sends requests until it is stopped: as the API server does, over one
// connection that is kept, and over new ones.
func startLoad(t *testing.T, port int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	t.Cleanup(l.stop)
	for _, kept := range []bool{true, true, true, false} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableKeepAlives: !kept}
		l.all.Go(func() {
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				at := time.Now()
				err := review(ctx, &http.Client{Transport: transport}, port)
				l.add(ctx, at, err)
				<-time.After(5 * time.Millisecond)
			}
		})
	}

	return l
}

func (l *load) add(ctx context.Context, at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.good++
	case ctx.Err() == nil:
		l.failures = append(l.failures, failure{at, err})
	}
}

// answered waits for a number of answers.
func (l *load) answered(t *testing.T, n int) {
	t.Helper()
	cluster.Eventually(t, "requests are answered", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.good < n {
			return fmt.Errorf("%d are, of %d: %v", l.good, n, l.failures)
		}

		return nil
	})
}

func (l *load) stop() {
	l.cancel()
	l.all.Wait()
}

// review asks a manager to admit a PodGroup.
func review(ctx context.Context, c *http.Client, port int) error {
	const body = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","namespace":"default","name":"g",
		"object":{"apiVersion":"scheduling.run.ai/v2alpha2","kind":"PodGroup","metadata":{"name":"g","namespace":"default"},"spec":{"minMember":1,"queue":"q"}}}}`
	url := fmt.Sprintf("https://127.0.0.1:%d/validate-scheduling-run-ai-v2alpha2-podgroup", port)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Contains(answer, []byte(`"allowed":true`)) {
		return fmt.Errorf("%s: %.300s", response.Status, answer)
	}

	return err
}
