package cluster

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/arbor-control/arbor/internal/controlplane"
)

// A Scheduler is a running arbor-scheduler.
type Scheduler struct {
	*Process

	// Address of its metrics and health, over TLS.
	Address string

	client *http.Client
}

// StartScheduler starts an arbor-scheduler of its own for one test, on a free port and without
// leader election unless args set it, and waits until it is ready. It ends with the test.
func (u *Up) StartScheduler(t testing.TB, args ...string) *Scheduler {
	t.Helper()
	s, err := u.Scheduler(args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("--- arbor-scheduler %d\n%s", s.PID(), s.Remarks())
		}
	})
	if err := s.Await(); err != nil {
		t.Fatal(err)
	}

	return s
}

// Scheduler starts an arbor-scheduler that the caller has to stop.
func (u *Up) Scheduler(args ...string) (*Scheduler, error) {
	binary, err := Binary("arbor-scheduler", "ARBOR_SCHEDULER")
	if err != nil {
		return nil, err
	}

	return u.scheduler(binary, nil, args)
}

// KubeScheduler starts Kubernetes' own in the same way, to compare the two.
func (u *Up) KubeScheduler(args ...string) (*Scheduler, error) {
	binary, err := Binary("arbor", "ARBOR")
	if err != nil {
		return nil, err
	}

	return u.scheduler(binary, []string{controlplane.Command, "kube-scheduler"}, args)
}

func (u *Up) scheduler(binary string, command, args []string) (*Scheduler, error) {
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{Address: fmt.Sprintf("https://127.0.0.1:%d", ports[0])}
	// It makes a certificate of its own, and serves metrics to clients that the API server
	// authenticates.
	config := rest.CopyConfig(u.Config)
	config.Insecure, config.CAData, config.CAFile = true, nil, ""
	if s.client, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	s.Process, err = StartProcess(binary, slices.Concat(command, []string{
		"--kubeconfig=" + u.Kubeconfig,
		"--authentication-kubeconfig=" + u.Kubeconfig,
		"--authorization-kubeconfig=" + u.Kubeconfig,
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", ports[0]),
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}, args)...)

	return s, err
}

// Await waits until the scheduler is ready.
func (s *Scheduler) Await() error {
	return poll("the scheduler is ready", s.Done(), func() error { return get(s.client, s.Address+"/readyz") })
}

// Sum adds up the series that a selector such as name{label="value"} chooses.
func (s *Scheduler) Sum(t testing.TB, selector string) float64 {
	t.Helper()
	sum, err := s.Value(selector)
	if err != nil {
		t.Fatal(err)
	}

	return sum
}

// Value is Sum for callers without a test.
func (s *Scheduler) Value(selector string) (float64, error) {
	all, err := series(s.Process, s.client, s.Address+"/metrics", selector)

	return total(all), err
}
