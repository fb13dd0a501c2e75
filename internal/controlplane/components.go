package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of the components, as package component and the logs know them.
const (
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"

	// Identities that do not belong to a component.
	programs   = "manager"
	admin      = "admin"
	frontProxy = "front-proxy"

	// Command is the hidden command that a child runs, followed by the
	// component's name and arguments.
	Command = "component"
)

// plane builds the components of one control plane.
type plane struct {
	home    *home
	creds   *credentials
	port    int
	noFsync bool
	audit   []string // flags of the API server
	client  *http.Client

	kubelets bool
}

func newPlane(h *home, creds *credentials, port int, noFsync bool) *plane {
	roots := x509.NewCertPool()
	roots.AddCert(creds.ca.Cert)

	return &plane{
		home: h, creds: creds, port: port, noFsync: noFsync,
		client: &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
		},
	}
}

func (p *plane) pki(name string) string {
	return p.home.file("pki", name)
}

func (p *plane) apiserver() component {
	args := []string{
		Command, apiserver,
		"--data-dir=" + p.home.file("etcd"),
		"--pki-dir=" + p.home.file("pki"),
		"--unsafe-no-fsync=" + strconv.FormatBool(p.noFsync),
		"--",
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		// The Service "kubernetes" cannot point at a loopback address, and
		// nothing here runs pods that would ask for it.
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(p.port),
		"--tls-cert-file=" + p.pki("server.crt"),
		"--tls-private-key-file=" + p.pki("server.key"),
		"--client-ca-file=" + p.pki("ca.crt"),
		// How aggregated API servers know that a request comes from here.
		"--requestheader-client-ca-file=" + p.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.pki(frontProxy+".crt"),
		"--proxy-client-key-file=" + p.pki(frontProxy+".key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.pki("sa.key"),
		"--service-account-signing-key-file=" + p.pki("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
	}
	args = slices.Concat(args, p.nodes(), p.audit)

	return component{name: apiserver, args: args, ready: p.serving(p.port, "/readyz")}
}

// nodes are the flags of the API server that depend on what runs pods: kwok, or a kubelet.
func (p *plane) nodes() []string {
	if !p.kubelets {
		return []string{"--authorization-mode=RBAC"}
	}

	return []string{
		"--authorization-mode=Node,RBAC",
		// Host names of nodes resolve nowhere.
		"--kubelet-preferred-address-types=InternalIP",
		// Webhooks are called at the addresses of pods, so that no kube-proxy is needed.
		"--enable-aggregator-routing=true",
	}
}

func (p *plane) controllerManager(port int) component {
	config := p.creds.kubeconfig(controllerManager)
	args := []string{
		Command, controllerManager,
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + p.pki("server.crt"),
		"--tls-private-key-file=" + p.pki("server.key"),
		"--root-ca-file=" + p.pki("ca.crt"),
		"--cluster-signing-cert-file=" + p.pki("ca.crt"),
		"--cluster-signing-key-file=" + p.pki("ca.key"),
		"--service-account-private-key-file=" + p.pki("sa.key"),
		"--use-service-account-credentials=true",
		// The defaults make the many controllers of one process, which here
		// have a whole API server to themselves, wait for each other.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--leader-elect=false",
	}

	return component{name: controllerManager, args: args, ready: p.serving(port, "/healthz")}
}

func (p *plane) scheduler(port int) component {
	config := p.creds.kubeconfig(scheduler)
	args := []string{
		Command, scheduler,
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + p.pki("server.crt"),
		"--tls-private-key-file=" + p.pki("server.key"),
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--leader-elect=false",
	}

	return component{name: scheduler, args: args, ready: p.serving(port, "/readyz")}
}

func (p *plane) kwok(ready func(context.Context) error) component {
	return component{name: kwok, args: []string{Command, kwok, "--kubeconfig=" + p.creds.kubeconfig(kwok)}, ready: ready}
}

// serving asks a component over HTTPS whether it is ready.
func (p *plane) serving(port int, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		return Get(ctx, p.client, fmt.Sprintf("https://127.0.0.1:%d%s", port, path))
	}
}

// Get checks the health of an HTTP endpoint.
func Get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}

	return fmt.Errorf("%s: %s", response.Status, failing(string(body)))
}

// failing keeps the lines of a readiness report that are not good news.
func failing(report string) string {
	var bad []string
	for line := range strings.Lines(report) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "[+]") {
			bad = append(bad, line)
		}
	}

	return strings.Join(bad, "; ")
}

// Ports are below the ephemeral ports of Linux and other systems. An outgoing connection could
// otherwise take a port between two runs of a component.
const (
	firstPort, lastPort = 20000, 32000
	portTries           = 1000
)

// FreePorts finds ports of the loopback interface that nothing uses now.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	var err error
	for range portTries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // it is not a secret
		if err = portFree(port); err == nil && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}

	return nil, fmt.Errorf("cannot find a free port from %d to %d: %w", firstPort, lastPort, err)
}

func portFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}

	return l.Close()
}
