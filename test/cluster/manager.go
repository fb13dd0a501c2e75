package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/arbor-control/arbor/internal/controlplane"
)

// A Manager is a running arbor-manager.
type Manager struct {
	*Process

	WebhookPort int
	Metrics     string
	Health      string

	// mayBeRefused is whether it is right that it does not get all that it asks for.
	mayBeRefused bool
}

// StartManager starts an arbor-manager of its own for one test, with free ports and without leader
// election unless args set it, and waits until it is ready. It ends with the test.
//
// It has the permissions that the chart gives a manager with these flags, see Grant, unless args
// name a kubeconfig: Administrator is one that may do everything. A test in which the manager needs
// more permissions fails, unless it calls MayBeRefused.
func (u *Up) StartManager(t *testing.T, args ...string) *Manager {
	t.Helper()
	m := u.LaunchManager(t, args...)
	if err := m.Await(); err != nil {
		t.Fatal(err)
	}

	return m
}

// LaunchManager is StartManager without the waiting.
func (u *Up) LaunchManager(t *testing.T, args ...string) *Manager {
	t.Helper()
	m, err := u.Manager(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Stop()
		if refusals := m.Refusals(); len(refusals) > 0 && !m.mayBeRefused {
			t.Errorf("the chart does not give the manager a right that it needs:\n%s", strings.Join(refusals, "\n"))
		}
		if t.Failed() {
			t.Logf("--- arbor-manager %d\n%s", m.PID(), m.Remarks())
		}
	})

	return m
}

// MayBeRefused allows the manager to send requests that are denied.
func (m *Manager) MayBeRefused() { m.mayBeRefused = true }

// Administrator is the flag of a manager that may do everything, as those of arbor up may.
func (u *Up) Administrator() string { return "--kubeconfig=" + u.Kubeconfig }

// Manager starts an arbor-manager that the caller has to stop.
func (u *Up) Manager(args ...string) (*Manager, error) {
	binary, err := Binary("arbor-manager", "ARBOR_MANAGER")
	if err != nil {
		return nil, err
	}
	ports, err := controlplane.FreePorts(3)
	if err != nil {
		return nil, err
	}
	kubeconfig := flagOf(args, "kubeconfig")
	if kubeconfig == "" {
		account, err := u.Grant(context.Background(), args...)
		if err != nil {
			return nil, err
		}
		if kubeconfig, err = u.KubeconfigOf(context.Background(), account); err != nil {
			return nil, err
		}
	}
	m := &Manager{WebhookPort: ports[0], Metrics: fmt.Sprintf("127.0.0.1:%d", ports[1]), Health: fmt.Sprintf("127.0.0.1:%d", ports[2])}
	m.Process, err = StartProcess(binary, append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--metrics-secure=false",
		"--metrics-bind-address=" + m.Metrics,
		"--health-probe-bind-address=" + m.Health,
		fmt.Sprintf("--webhook-port=%d", m.WebhookPort),
	}, args...)...)

	return m, err
}

// Await waits until the manager is ready.
func (m *Manager) Await() error {
	return poll("the manager is ready", m.Done(), func() error { return get(http.DefaultClient, "http://"+m.Health+"/readyz") })
}

func get(c *http.Client, url string) error {
	response, err := c.Get(url) //nolint:noctx // the transport's own limits are enough here
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}

	return nil
}
