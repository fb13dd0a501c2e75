package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/arbor-control/arbor/test/cluster"
	"github.com/arbor-control/arbor/test/node/sandbox"
)

const (
	// Name is that of the node.
	Name = "node"

	nodeIP = "10.10.0.1"
	pods   = "10.244.0.0/24"
	// service is the address of the Service "kubernetes".
	service = "10.96.0.1"

	// patience is how long a program may need to become ready.
	patience = 2 * time.Minute
)

// A Machine is a running node.
type Machine struct {
	up         *cluster.Up
	dir        string
	containerd *cluster.Process
	kubelet    *cluster.Process
}

// Programs are the files that a Machine needs.
func Programs() []sandbox.Program {
	all := make([]sandbox.Program, 0, 8)
	for _, name := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni/bridge", "cni/host-local", "cni/loopback"} {
		all = append(all, sandbox.Program{Path: program(name), Makes: "make node-tools"})
	}

	return all
}

func program(name string) string { return filepath.Join(cluster.Root(), "bin", "node", name) }

// New prepares the network of a node and starts containerd.
func New(ctx context.Context) (*Machine, error) {
	m := &Machine{dir: filepath.Join(sandbox.Dir(), "node")}
	if err := os.MkdirAll(m.file("cni"), 0o755); err != nil {
		return nil, err
	}
	if err := os.Setenv("PATH", filepath.Dir(program("runc"))+":"+os.Getenv("PATH")); err != nil {
		return nil, err
	}
	for _, args := range []string{
		"link add node0 type bridge", "link set node0 alias " + sandbox.Name() + " up",
		"addr add " + nodeIP + "/24 dev node0", "addr add " + service + "/32 dev node0",
	} {
		if err := sandbox.Run("ip", strings.Fields(args)...); err != nil {
			return nil, err
		}
	}
	if err := m.configure(); err != nil {
		return nil, err
	}
	var err error
	if m.containerd, err = cluster.StartProcess(program("containerd"), "--config", m.file("containerd.toml")); err != nil { //nolint:contextcheck // it runs until the tests end
		return nil, err
	}
	err = m.await(ctx, "containerd is ready", m.containerd, func() error { return m.ctr("version") })

	return m, err
}

// Import makes images of archives known to the node.
func (m *Machine) Import(archives ...string) error {
	for _, archive := range archives {
		if err := m.ctr("--namespace", "k8s.io", "images", "import", archive); err != nil {
			return err
		}
	}

	return nil
}

// Join starts the kubelet, waits until the node is ready, and opens the way from pods to
// the API server.
func (m *Machine) Join(ctx context.Context, up *cluster.Up) error {
	m.up = up
	if err := forward(service+":443", strings.TrimPrefix(up.Config.Host, "https://")); err != nil {
		return err
	}
	if err := m.credentials(); err != nil {
		return err
	}
	var err error
	m.kubelet, err = cluster.StartProcess(program("kubelet"), //nolint:contextcheck // it runs until the tests end
		"--config="+m.file("kubelet.yaml"), "--kubeconfig="+m.file("kubelet.kubeconfig"), "--root-dir="+m.file("kubelet"),
		"--hostname-override="+Name, "--node-ip="+nodeIP)
	if err != nil {
		return err
	}
	c, err := up.NewClient(nil)
	if err != nil {
		return err
	}

	return m.await(ctx, "the node is ready", m.kubelet, func() error {
		node := &corev1.Node{}
		if err := c.Get(ctx, types.NamespacedName{Name: Name}, node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}

		return fmt.Errorf("its conditions are %+v", node.Status.Conditions)
	})
}

// Logs are the ends of what containerd and the kubelet have logged.
func (m *Machine) Logs() string {
	var b strings.Builder
	for name, p := range map[string]*cluster.Process{"containerd": m.containerd, "kubelet": m.kubelet} {
		if p != nil {
			out := p.Output()
			const end = 8 << 10
			fmt.Fprintf(&b, "--- %s\n%s\n", name, out[max(0, len(out)-end):])
		}
	}

	return b.String()
}

func (m *Machine) file(name string) string { return filepath.Join(m.dir, name) }

func (m *Machine) socket() string { return m.file("containerd.sock") }

func (m *Machine) ctr(args ...string) error {
	return sandbox.Run(program("ctr"), append([]string{"--address", m.socket()}, args...)...)
}

// await waits for a condition, as long as a process runs.
func (m *Machine) await(ctx context.Context, what string, p *cluster.Process, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("waited until %s, and the process ended: %w\n%s", what, err, m.Logs())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waited until %s: %w\n%s", what, err, m.Logs()), ctx.Err())
		case <-tick.C:
		}
	}
}
