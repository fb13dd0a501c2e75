package cluster

import (
	"fmt"
	"net"
	"net/http"
	"testing"
)

// A Manager is a running arbor-manager.
type Manager struct {
	*Process

	WebhookPort int
	Metrics     string
	Health      string
}

// StartManager starts an arbor-manager of its own for one test, with free ports
// and without leader election unless args say otherwise, and waits until it is
// ready. It ends with the test.
func (u *Up) StartManager(t *testing.T, args ...string) *Manager {
	t.Helper()
	m := u.LaunchManager(t, args...)
	Eventually(t, "the manager is ready", func() error {
		select {
		case <-m.Done():
			t.Fatalf("the manager ended: %s", m.Output())
		default:
		}

		return get("http://" + m.Health + "/readyz")
	})

	return m
}

// LaunchManager is StartManager without the waiting.
func (u *Up) LaunchManager(t *testing.T, args ...string) *Manager {
	t.Helper()
	binary, err := Binary("arbor-manager", "ARBOR_MANAGER")
	if err != nil {
		t.Fatal(err)
	}
	m := &Manager{WebhookPort: freePort(t), Metrics: fmt.Sprintf("127.0.0.1:%d", freePort(t)), Health: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	m.Process, err = StartProcess(binary, append([]string{
		"--kubeconfig=" + u.Kubeconfig,
		"--leader-elect=false",
		"--metrics-secure=false",
		"--metrics-bind-address=" + m.Metrics,
		"--health-probe-bind-address=" + m.Health,
		fmt.Sprintf("--webhook-port=%d", m.WebhookPort),
	}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Stop()
		if t.Failed() {
			t.Logf("--- arbor-manager %d\n%s", m.PID(), m.Output())
		}
	})

	return m
}

func get(url string) error {
	response, err := http.Get(url) //nolint:noctx // the transport's own limits are enough here
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}

	return nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	return l.Addr().(*net.TCPAddr).Port
}
