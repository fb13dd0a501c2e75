package cluster

import (
	"context"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/arbor-control/arbor/test/cluster/network"
)

// NewProxy starts a proxy of the API server, which ends with the test, after what was started
// later. With a token it authenticates with it, else as the administrator. The faults are the same
// for the same seed and the same requests in the same order.
func (u *Up) NewProxy(t testing.TB, token string, seed uint64) *network.Proxy {
	t.Helper()

	return network.NewProxy(t, u.Config, token, seed)
}

// NewRelay starts a relay of connections to the API server, which ends with the test.
func (u *Up) NewRelay(t testing.TB) *network.Relay {
	t.Helper()
	to, _, err := u.address()
	if err != nil {
		t.Fatal(err)
	}

	return network.NewRelay(t, to)
}

// Behind returns the flag with which a manager with these flags and the chart's permissions
// reaches the API server by a relay.
func (u *Up) Behind(ctx context.Context, r *network.Relay, flags ...string) (string, error) {
	account, err := u.Grant(ctx, flags...)
	if err != nil {
		return "", err
	}
	path, err := u.KubeconfigOf(ctx, account)
	if err != nil {
		return "", err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return "", err
	}
	for _, c := range config.Clusters {
		c.Server = "https://" + r.Address()
	}
	path, err = u.write(config)

	return "--kubeconfig=" + path, err
}
