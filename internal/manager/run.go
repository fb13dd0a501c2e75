package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/internal/access"
	"github.com/arbor-control/arbor/internal/fence"
	"github.com/arbor-control/arbor/internal/kube"
	"github.com/arbor-control/arbor/internal/webhook"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

const (
	// shutdown is how long running reconciles may take to end.
	shutdown = 3 * time.Second
	// endpointTimeout is how long clients of other endpoints than webhooks wait.
	endpointTimeout = 5 * time.Second
	// renewDeadline is after how long without a renewal a leader gives up; it is
	// controller-runtime's. Another can lead five seconds later.
	renewDeadline = 10 * time.Second
)

// Run runs the manager until ctx ends.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := setupLogging(o); err != nil {
		return err
	}
	config, err := restConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	o.fence = fence.New(o.Namespace, o.LeaderElectID, renewDeadline)
	on := selected(o.Controllers)
	scheme, err := newScheme(on)
	if err != nil {
		return err
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot reach the cluster: %w", err)
	}
	if err := prepareCluster(ctx, direct, o, on); err != nil {
		return err
	}

	r := runner{options: o, parts: on, direct: direct, drain: newDrain(o.drainTime())}
	if err := r.build(ctx, config, scheme); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("the manager stopped: %w", err)
	}

	return nil
}

func newScheme(on []part) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	add := []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme}
	for _, p := range on {
		add = append(add, p.scheme)
	}
	for _, f := range add {
		if err := f(scheme); err != nil {
			return nil, fmt.Errorf("cannot register types: %w", err)
		}
	}

	return scheme, nil
}

// prepareCluster creates what must exist before anything can start: the namespace, and the CRDs of
// the enabled components.
func prepareCluster(ctx context.Context, c client.Client, o Options, on []part) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(ns), &corev1.Namespace{}); apierrors.IsNotFound(err) {
		if err := c.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create namespace %s: %w", o.Namespace, err)
		}
	} else if err != nil && !apierrors.IsForbidden(err) {
		// Without permission to read the namespace, the manager may still work in it.
		return fmt.Errorf("cannot reach the cluster: %w", err)
	}
	for _, p := range on {
		definitions, err := p.definitions()
		if err != nil {
			return err
		}
		for _, crd := range definitions {
			if err := kube.EnsureCRD(ctx, c, crd, o.CRDs == crdsInstall); err != nil {
				return err
			}
		}
	}

	return nil
}

// A runner builds and runs two managers of controller-runtime: see run.
type runner struct {
	options Options
	parts   []part
	direct  client.Client
	drain   *drain

	// server has everything that every replica does: caches, webhooks and health.
	server ctrl.Manager
	// controllers has what only the leader does, and metrics, which are about that.
	controllers ctrl.Manager
}

func (r *runner) build(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) error {
	keeper := serving.New(r.direct, r.servingOptions())
	if err := r.newManagers(config, scheme, keeper); err != nil {
		return fmt.Errorf("cannot make the manager: %w", err)
	}
	var endpoints []endpoint
	for _, p := range r.parts {
		served, err := p.controllers(r.controllers, r.options)
		if err != nil {
			return fmt.Errorf("cannot set up %s: %w", p.name, err)
		}
		endpoints = append(endpoints, served...)
	}
	mgr := r.server
	if err := r.addProbes(mgr); err != nil {
		return err
	}
	if !r.options.Webhooks {
		return nil
	}

	if err := r.addEndpoints(mgr, endpoints); err != nil {
		return err
	}

	if err := r.addWebhooks(mgr); err != nil {
		return err
	}
	if dir := r.options.CertDir; dir != "" {
		return metrics.Registry.Register(serving.NewExpiry(func() []serving.Certificate { return serving.FileCertificates(dir) }))
	}
	if err := metrics.Registry.Register(serving.NewExpiry(keeper.Certificates)); err != nil {
		return err
	}

	return r.addKeeper(ctx, mgr, keeper)
}

// addProbes adds what every manager checks. Webhooks add more.
func (r *runner) addProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("shutdown", r.drain.ready); err != nil {
		return err
	}

	return mgr.AddReadyzCheck("caches", synced(mgr.GetCache()))
}

// newManagers makes both managers. The controllers read from the caches of the server, and
// everything that they write passes the fence.
func (r *runner) newManagers(config *rest.Config, scheme *runtime.Scheme, keeper *serving.Keeper) (err error) {
	r.server, err = ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		GracefulShutdownTimeout: new(max(r.options.webhookTimeout(), endpointTimeout)),
		HealthProbeBindAddress:  r.options.HealthAddress,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		WebhookServer:           r.webhookServer(keeper),
		Cache:                   r.cacheOptions(),
	})
	if err != nil {
		return err
	}
	r.controllers, err = ctrl.NewManager(r.options.fence.Around(rest.CopyConfig(config)), ctrl.Options{
		Scheme:                  scheme,
		LeaderElection:          r.options.LeaderElect,
		LeaderElectionID:        r.options.LeaderElectID,
		LeaderElectionNamespace: r.options.Namespace,
		// Nothing is written after the manager has ended, so the next may lead at once.
		LeaderElectionReleaseOnCancel: true,
		RenewDeadline:                 new(renewDeadline),
		GracefulShutdownTimeout:       new(shutdown),
		PprofBindAddress:              r.options.PprofAddress,
		Metrics:                       r.metricsOptions(),
		MapperProvider:                func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return r.server.GetRESTMapper(), nil },
		NewCache:                      func(*rest.Config, cache.Options) (cache.Cache, error) { return borrowed{r.server.GetCache()}, nil },
	})

	return err
}

// addEndpoints serves them where the webhooks are: over TLS, with a certificate
// that the cluster has the authority of.
func (r *runner) addEndpoints(mgr ctrl.Manager, endpoints []endpoint) error {
	gate, err := access.New(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	// Their limits are not those of reviews, which must not wait for a TokenReview.
	limits := webhook.NewLimiter(endpointTimeout)
	for _, e := range endpoints {
		mgr.GetWebhookServer().Register(e.path, limits.Around(r.drain.closed(gate.Protect(mgr.GetLogger(), e.handler, e.ask))))
	}

	return nil
}

func (r *runner) addWebhooks(mgr ctrl.Manager) error {
	timeout := r.options.webhookTimeout()
	m, limits := webhook.NewMetrics(metrics.Registry), webhook.NewLimiter(timeout)
	for _, p := range r.parts {
		for _, h := range p.webhooks {
			mgr.GetWebhookServer().Register(h.Path, r.drain.around(timeout, limits.Around(lasting(&ctrlwebhook.Admission{Handler: h.handler(mgr, r.options, m)}))))
		}
	}

	return mgr.AddReadyzCheck("webhook-server", mgr.GetWebhookServer().StartedChecker())
}

// addKeeper makes the certificates and the registration the manager's own
// business.
func (r *runner) addKeeper(ctx context.Context, mgr ctrl.Manager, keeper *serving.Keeper) error {
	if err := keeper.Prepare(ctx); err != nil {
		return err
	}
	if err := keeper.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("cannot set up the webhooks: %w", err)
	}

	return mgr.AddReadyzCheck("webhook-registration", keeper.Ready)
}

func (r *runner) servingOptions() serving.Options {
	settings, _ := r.options.webhookSettings() // Validate has read them
	o := serving.Options{
		Elected: func() <-chan struct{} { return r.controllers.Elected() },
		// Managers with leases of their own lead at the same time.
		LeaderElection: r.options.LeaderElect && r.options.LeaderElectID == names.Lease,
		Draining:       r.drain.begun.Load,
		Settings:       settings,
		Namespace:      r.options.Namespace,
		Configuration:  r.options.WebhookConfig,
		Life:           r.options.CertLife,
		Address: serving.Address{
			Service:   r.options.WebhookService,
			Namespace: r.options.Namespace,
			Host:      r.options.WebhookHost,
			Port:      r.options.WebhookPort,
		},
	}
	for _, p := range r.parts {
		for _, h := range p.webhooks {
			o.Webhooks = append(o.Webhooks, h.Webhook)
		}
	}

	return o
}

// webhookServer speaks HTTP/2, which the API server prefers: its GOAWAY is what lets a
// replica end without a failed review, see drain. The HTTP server of Go runs at most 250
// requests of a connection at a time, also if the client resets them, and Limiter bounds
// those of all connections.
func (r *runner) webhookServer(keeper *serving.Keeper) ctrlwebhook.Server {
	o := ctrlwebhook.Options{Port: r.options.WebhookPort}
	if r.options.CertDir != "" {
		// The files are read again whenever they change.
		o.CertDir = r.options.CertDir
	} else {
		o.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = keeper.GetCertificate }}
	}
	if ip := net.ParseIP(r.options.WebhookHost); r.options.WebhookService == "" && ip != nil && ip.IsLoopback() {
		o.Host = r.options.WebhookHost
	}

	return ctrlwebhook.NewServer(o)
}

func (r *runner) metricsOptions() metricsserver.Options {
	o := metricsserver.Options{BindAddress: r.options.MetricsAddress, SecureServing: r.options.MetricsSecure}
	if o.SecureServing {
		// Nothing that reads metrics needs HTTP/2, and its attacks are many.
		o.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
		o.FilterProvider = func(config *rest.Config, c *http.Client) (metricsserver.Filter, error) {
			gate, err := access.New(config, c)

			return func(log logr.Logger, next http.Handler) (http.Handler, error) {
				return gate.Protect(log, next, access.Path), nil
			}, err
		}
	}

	return o
}

// cacheOptions prevents that the cache holds all Secrets because of the two objects that the
// webhooks need. It drops managed fields, which are a third of the memory and are never read from a
// cache.
func (r *runner) cacheOptions() cache.Options {
	o := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {
			Namespaces: map[string]cache.Config{r.options.Namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", names.WebhookSecret),
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {
			Field: fields.OneTermEqualSelector("metadata.name", r.options.WebhookConfig),
		},
	}}
	// A kind of a part that is off may not even be served.
	for _, p := range r.parts {
		if p.cached != nil {
			maps.Copy(o.ByObject, p.cached(r.options))
		}
		if ns := r.options.Delivery.Namespace; ns != "" {
			for _, kind := range p.scoped {
				cached := o.ByObject[kind]
				cached.Namespaces = map[string]cache.Config{ns: {}}
				o.ByObject[kind] = cached
			}
		}
	}

	return o
}

// restConfig reads a kubeconfig, or else what a pod has, or else what kubectl
// would use.
func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find a cluster: %w", err)
	}
	// The API server has priority and fairness; a second, blind limit here
	// would only make a backlog slow.
	config.QPS = -1
	config.UserAgent = "arbor-manager"

	return config, nil
}
