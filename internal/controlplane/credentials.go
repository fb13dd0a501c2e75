package controlplane

import (
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/arbor-control/arbor/internal/pki"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	certLife = 365 * 24 * time.Hour

	// contextName is the name of the cluster, user and context in our kubeconfigs. A kubeconfig
	// with it may be overwritten, any other may not.
	contextName = "arbor"

	masters = "system:masters"
)

// identities are the clients that get a certificate, and their groups. RBAC grants permissions to
// the first two by name; the rest are administrators.
var identities = map[string]struct{ user, group string }{
	controllerManager: {"system:kube-controller-manager", ""},
	scheduler:         {"system:kube-scheduler", ""},
	kwok:              {"arbor:kwok", masters},
	programs:          {"arbor:manager", masters},
	admin:             {"arbor:admin", masters},
}

// credentials are the keys of one control plane. The authorities and the key that signs service
// account tokens are created once and kept; certificates are created at each start, so they never
// expire between two runs.
type credentials struct {
	home   *home
	server string
	ca     *pki.CA
}

func newCredentials(h *home, port int, now time.Time) (*credentials, error) {
	c := &credentials{home: h, server: fmt.Sprintf("https://127.0.0.1:%d", port)}

	var err error
	if c.ca, err = c.authority("ca", now); err != nil {
		return nil, err
	}
	if _, err := readOrMake(h.file("pki", "sa.key"), pki.NewKey); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", h.file("pki", "sa.key"), err)
	}
	if err := c.serving(now); err != nil {
		return nil, err
	}
	for name, id := range identities {
		if err := c.client(name, id.user, id.group, now); err != nil {
			return nil, err
		}
	}

	return c, nil
}

func (c *credentials) authority(name string, now time.Time) (*pki.CA, error) {
	certFile, keyFile := c.home.file("pki", name+".crt"), c.home.file("pki", name+".key")
	if _, err := os.Stat(certFile); os.IsNotExist(err) {
		ca, err := pki.NewCA("arbor-"+name, now, caLife)
		if err != nil {
			return nil, err
		}
		pair, err := ca.Pair()
		if err != nil {
			return nil, err
		}
		// The key first: a certificate without its key would stop every
		// later start, a key without a certificate is just replaced.
		if err := writeFile(keyFile, pair.Key); err != nil {
			return nil, err
		}

		return ca, writeFile(certFile, pair.Cert)
	}

	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read certificate authority: %w", err)
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read certificate authority: %w", err)
	}
	ca, err := pki.ParseCA(pki.Pair{Cert: cert, Key: key})
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w; restore it and its key, or remove both to have new ones made", certFile, err)
	}

	return ca, nil
}

// serving creates the certificates that components show to each other. Each use has its own
// authority: a client certificate of the cluster must not open etcd, and must not be usable for
// another identity.
func (c *credentials) serving(now time.Time) error {
	r := pki.Request{
		CommonName: "arbor-server",
		DNSNames:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:        []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 96, 0, 1)},
		Now:        now,
		Life:       certLife,
	}
	if err := c.write("server", c.ca, r); err != nil {
		return err
	}
	for _, name := range []string{"etcd", frontProxy} {
		ca, err := c.authority(name+"-ca", now)
		if err != nil {
			return err
		}
		r.CommonName = name
		if err := c.write(name, ca, r); err != nil {
			return err
		}
	}

	return nil
}

func (c *credentials) write(name string, ca *pki.CA, r pki.Request) error {
	pair, err := ca.Issue(r)
	if err != nil {
		return err
	}
	if err := writeFile(c.home.file("pki", name+".crt"), pair.Cert); err != nil {
		return err
	}

	return writeFile(c.home.file("pki", name+".key"), pair.Key)
}

// client writes the kubeconfig of one identity.
func (c *credentials) client(name, user, group string, now time.Time) error {
	r := pki.Request{CommonName: user, Now: now, Life: certLife}
	if group != "" {
		r.Organizations = []string{group}
	}
	pair, err := c.ca.Issue(r)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{contextName: {Server: c.server, CertificateAuthorityData: c.ca.CertPEM()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{contextName: {ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}},
		Contexts:       map[string]*clientcmdapi.Context{contextName: {Cluster: contextName, AuthInfo: contextName}},
		CurrentContext: contextName,
	})
	if err != nil {
		return fmt.Errorf("cannot write kubeconfig: %w", err)
	}

	return writeFile(c.kubeconfig(name), data)
}

func (c *credentials) kubeconfig(name string) string {
	return c.home.file("pki", name+".kubeconfig")
}

func (c *credentials) config(name string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig(name))
	if err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	return config, nil
}

// publish makes the administrator's kubeconfig appear, whole, at path.
func (c *credentials) publish(path string) error {
	data, err := os.ReadFile(c.kubeconfig(admin))
	if err != nil {
		return fmt.Errorf("cannot read kubeconfig: %w", err)
	}

	return writeFile(path, data)
}

// clearKubeconfig removes the kubeconfig of an earlier run, so that the file exists only once
// everything is ready. A file with anything but our own context belongs to the user and is not
// changed.
func clearKubeconfig(path string) error {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil
	}
	existing, err := clientcmd.LoadFromFile(path)
	if err != nil || len(existing.Contexts) != 1 || existing.Contexts[contextName] == nil {
		return fmt.Errorf("kubeconfig %s exists and holds other clusters: it would be overwritten; choose another with --kubeconfig", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot replace kubeconfig: %w", err)
	}

	return nil
}
