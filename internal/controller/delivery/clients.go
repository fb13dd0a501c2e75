package delivery

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/arbor-control/arbor/internal/controller/delivery/kinds"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/kube"
)

// tenantClient returns a client that sends nothing except as the account in the context.
func tenantClient(config *rest.Config, mapper meta.RESTMapper) (client.Client, error) {
	if config.Impersonate.UserName != "" {
		return nil, fmt.Errorf("--delivery-scope=%s: the manager's kubeconfig impersonates %s, and a request can be sent as one user only: use a kubeconfig without \"as\"",
			tenancy.Namespace, config.Impersonate.UserName)
	}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(kube.Impersonate)
	hc, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}
	c, err := client.New(config, client.Options{HTTPClient: hc, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}

	return c, nil
}

// clients are those of the cluster that is delivered to. Nothing of it is cached: an object that is
// not read costs no memory.
func clients(config *rest.Config, hc *http.Client) (client.Client, *kinds.Cache, metadata.Interface, discovery.DiscoveryInterface, error) {
	// Warnings are about manifests, for the users who write them, and they do not read the log of
	// the manager.
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	mapper, err := apiutil.NewDynamicRESTMapper(config, hc)
	if err != nil {
		return nil, nil, nil, nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}
	kinds := kinds.NewCache(mapper, time.Now)
	remote, err := client.New(config, client.Options{HTTPClient: hc, Mapper: kinds})
	if err != nil {
		return nil, nil, nil, nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}
	watching, err := metadata.NewForConfigAndClient(config, hc)
	if err != nil {
		return nil, nil, nil, nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(config, hc)
	if err != nil {
		return nil, nil, nil, nil, fmt.Errorf("cannot reach the cluster that is delivered to: %w", err)
	}

	return remote, kinds, watching, served, nil
}
