package manager

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
	"github.com/arbor-control/arbor/internal/fence"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

const (
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

	minLife = 10 * time.Second
)

// Options of the manager.
type Options struct {
	Kubeconfig  string
	Controllers []string
	Namespace   string
	CRDs        string

	LeaderElect   bool
	LeaderElectID string

	MetricsAddress string
	MetricsSecure  bool
	HealthAddress  string
	PprofAddress   string

	Webhooks       bool
	WebhookHost    string
	WebhookPort    int
	WebhookService string
	WebhookConfig  string
	// WebhookFailurePolicy, WebhookTimeoutSeconds and the selectors are those of the
	// ValidatingWebhookConfiguration.
	WebhookFailurePolicy     string
	WebhookTimeoutSeconds    int32
	WebhookNamespaceSelector string
	WebhookObjectSelector    string
	// WebhookDrain is how long webhooks behind a Service are served after SIGTERM.
	WebhookDrain time.Duration
	CertLife     time.Duration
	// CertDir is the directory with the certificate of the webhooks, if another program creates it.
	CertDir string

	// PriorityClassGuard selects the PriorityClasses that a PodGroup may name only
	// if its author may use them.
	PriorityClassGuard string

	// RestoreGrace is how long nothing of a restored pool must arrive before the pool
	// allocates again.
	RestoreGrace time.Duration

	LogFormat string
	LogLevel  string

	// Scope is what Compositions can reach: see package tenancy.
	Scope string
	// InputNamespaces are those that every Composition may bind inputs of, if Scope restricts
	// them.
	InputNamespaces []string

	Tenancy   TenancyOptions
	Synthesis SynthesisOptions
	Delivery  DeliveryOptions

	// fence is what everything passes that controllers send.
	fence *fence.Fence
}

// DefaultOptions are those of a manager in a cluster.
func DefaultOptions() Options {
	return Options{
		Controllers:    Parts(),
		Namespace:      ownNamespace(),
		CRDs:           crdsInstall,
		LeaderElect:    true,
		LeaderElectID:  names.Lease,
		RestoreGrace:   10 * time.Minute,
		MetricsAddress: ":8443",
		MetricsSecure:  true,
		HealthAddress:  ":8081",
		Webhooks:       true,
		WebhookHost:    "127.0.0.1",
		WebhookPort:    9443,
		WebhookConfig:  names.Arbor,
		WebhookDrain:   5 * time.Second,

		WebhookFailurePolicy:  string(serving.DefaultSettings().FailurePolicy),
		WebhookTimeoutSeconds: serving.DefaultSettings().TimeoutSeconds,

		CertLife:           365 * 24 * time.Hour,
		PriorityClassGuard: string(podgroup.GuardSystem),
		LogFormat:          logJSON,
		LogLevel:           "info",
		Scope:              string(tenancy.Cluster),
		Tenancy:            DefaultTenancyOptions(),
		Synthesis:          DefaultSynthesisOptions(),
		Delivery:           DefaultDeliveryOptions(),
	}
}

// Values of --crds and --log-format.
const (
	crdsInstall = "install"
	crdsCheck   = "check"

	logJSON = "json"
	logText = "text"
)

// AddFlags binds the options to flags, with the current values as defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Kubeconfig of the cluster. Defaults to the ServiceAccount of the pod, or to the kubeconfig that kubectl uses.")
	AddControllersFlag(fs, &o.Controllers)
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of Arbor's own objects: the Lease of the leader and the certificates of the webhooks.")
	fs.StringVar(&o.CRDs, "crds", o.CRDs, "How to handle the CustomResourceDefinitions of the enabled components: install (and upgrade those that Arbor installed) or check.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Let one replica at a time run the controllers.")
	fs.StringVar(&o.LeaderElectID, "leader-election-id", o.LeaderElectID, "Name of the Lease of the leader. Managers with different components in one cluster need different names.")
	fs.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "Address of the metrics endpoint. 0 disables it.")
	fs.BoolVar(&o.MetricsSecure, "metrics-secure", o.MetricsSecure, "Serve metrics over HTTPS, to clients that may get the URL /metrics. Plain HTTP is possible on a loopback address only.")
	fs.StringVar(&o.HealthAddress, "health-probe-bind-address", o.HealthAddress, "Address of /healthz and /readyz. 0 disables them.")
	fs.StringVar(&o.PprofAddress, "pprof-bind-address", o.PprofAddress, "Loopback address of the Go profiles at /debug/pprof, which are served without authentication to users of the machine and to port forwards. If empty, they are disabled.")
	fs.BoolVar(&o.Webhooks, "webhooks", o.Webhooks, "Serve and register the admission webhooks.")
	fs.IntVar(&o.WebhookPort, "webhook-port", o.WebhookPort, "Port of the admission webhooks.")
	fs.StringVar(&o.WebhookService, "webhook-service", o.WebhookService, "Service, in --namespace, by which the API server reaches the webhooks. If empty, the API server uses --webhook-host.")
	fs.StringVar(&o.WebhookHost, "webhook-host", o.WebhookHost, "Host by which the API server reaches the webhooks if there is no --webhook-service. If it is a loopback address, the webhooks listen on that address only.")
	fs.StringVar(&o.WebhookConfig, "webhook-configuration", o.WebhookConfig, "Name of the ValidatingWebhookConfiguration. Managers with different components in one cluster need different names.")
	fs.StringVar(&o.WebhookFailurePolicy, "webhook-failure-policy", o.WebhookFailurePolicy, "How the API server handles requests that no webhook answers: Fail (reject them) or Ignore (accept them without a review).")
	fs.Int32Var(&o.WebhookTimeoutSeconds, "webhook-timeout-seconds", o.WebhookTimeoutSeconds, "Seconds that the API server waits for the response of a webhook: 1 to 30.")
	fs.StringVar(&o.WebhookNamespaceSelector, "webhook-namespace-selector", o.WebhookNamespaceSelector, "Label selector, as for kubectl or as JSON, of the namespaces whose requests are reviewed. Those with the label "+names.SkipAdmissionLabel+"=true are never reviewed. Defaults to all other namespaces.")
	fs.StringVar(&o.WebhookObjectSelector, "webhook-object-selector", o.WebhookObjectSelector, "Label selector, as for kubectl or as JSON, of the objects that are reviewed. Defaults to all.")
	fs.DurationVar(&o.WebhookDrain, "webhook-drain", o.WebhookDrain, "How long the webhooks are served after SIGTERM, while the cluster removes this replica from the endpoints of --webhook-service. Without --webhook-service there is nothing to wait for.")
	fs.DurationVar(&o.RestoreGrace, "restore-grace", o.RestoreGrace, "How long no Subnet or claim of a pool that was restored from a backup must arrive before the pool allocates new blocks.")
	fs.DurationVar(&o.CertLife, "webhook-ca-lifetime", o.CertLife, "Lifetime of the certificate authority of the webhooks. It is replaced after two thirds of this time.")
	fs.StringVar(&o.CertDir, "webhook-cert-dir", o.CertDir, "Directory with tls.crt and tls.key, which another program creates and renews, for example cert-manager. That program must also register the webhooks: the manager then writes neither a Secret nor a ValidatingWebhookConfiguration. If empty, the manager creates its own certificates.")
	fs.StringVar(&o.PriorityClassGuard, "priority-class-guard", o.PriorityClassGuard, "PriorityClasses that a PodGroup may name only if its author has the permission to use them: system (those of Kubernetes, system-*), all or off.")
	fs.StringVar(&o.Scope, "delivery-scope", o.Scope, "Scope of Compositions: cluster (all permissions of the manager, as with Eno) or namespace (their own namespace, as a ServiceAccount in it).")
	o.Tenancy.AddFlags(fs)
	fs.StringSliceVar(&o.InputNamespaces, "input-namespaces", o.InputNamespaces, "With --delivery-scope=namespace, the namespaces whose objects Compositions may bind as inputs, in addition to their own.")
	o.Synthesis.AddFlags(fs)
	o.Delivery.AddFlags(fs)
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "Format of the log: json or text.")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "Minimum log level: debug, info, warn or error.")
}

// AddControllersFlag binds --controllers, which other commands pass on.
func AddControllersFlag(fs *pflag.FlagSet, controllers *[]string) {
	fs.StringSliceVar(controllers, "controllers", *controllers, "Components to run, of: "+strings.Join(Parts(), ", ")+".")
}

// Validate returns the first thing that is wrong, in words.
func (o *Options) Validate() error {
	if err := ValidateControllers(o.Controllers); err != nil {
		return err
	}
	if err := either("--crds", o.CRDs, crdsInstall, crdsCheck); err != nil {
		return err
	}
	if err := either("--log-format", o.LogFormat, logJSON, logText); err != nil {
		return err
	}
	if err := cmp.Or(o.validateGuard(), o.Tenancy.Validate(), o.Synthesis.Validate(), o.Delivery.Validate(), o.validateLease(), o.validateCertDir(), o.validateDrain(), o.validateScope(), o.validateWebhooks()); err != nil {
		return err
	}
	if o.CertLife < minLife {
		return fmt.Errorf("--webhook-ca-lifetime %s: it must be at least %s", o.CertLife, minLife)
	}
	if !o.MetricsSecure && o.MetricsAddress != "0" && !isLoopback(o.MetricsAddress) {
		return fmt.Errorf("--metrics-bind-address %q: metrics without TLS and authorization are served on a loopback address only; use 127.0.0.1:PORT, or leave --metrics-secure on", o.MetricsAddress)
	}

	return o.validatePprof()
}

// drainTime is how long the webhooks are served after SIGTERM: not at all unless the API
// server finds another replica behind a Service.
func (o *Options) drainTime() time.Duration {
	if !o.Webhooks || o.WebhookService == "" {
		return 0
	}

	return o.WebhookDrain
}

// webhookTimeout is how long a request to the webhook server may take: as long as the API
// server waits for an answer.
func (o *Options) webhookTimeout() time.Duration {
	return time.Duration(o.WebhookTimeoutSeconds) * time.Second
}

func (o *Options) validateGuard() error {
	switch podgroup.Guard(o.PriorityClassGuard) {
	case podgroup.GuardSystem, podgroup.GuardAll, podgroup.GuardOff:
		return nil
	default:
		return fmt.Errorf("--priority-class-guard %q: it must be %s, %s or %s", o.PriorityClassGuard, podgroup.GuardSystem, podgroup.GuardAll, podgroup.GuardOff)
	}
}

func (o *Options) validateLease() error {
	if o.LeaderElectID == "" {
		return errors.New("--leader-election-id is empty: name the lease")
	}

	return nil
}

// validateCertDir looks for the files now: the webhook server would only do so
// when everything else runs already.
func (o *Options) validateCertDir() error {
	if o.CertDir == "" || !o.Webhooks {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(filepath.Join(o.CertDir, "tls.crt"), filepath.Join(o.CertDir, "tls.key")); err != nil {
		return fmt.Errorf("--webhook-cert-dir %q: it must have a certificate in tls.crt and its key in tls.key: %w", o.CertDir, err)
	}

	return nil
}

func (o *Options) validateDrain() error {
	if o.WebhookDrain < 0 {
		return fmt.Errorf("--webhook-drain %s: it must not be negative", o.WebhookDrain)
	}

	return nil
}

func (o *Options) validateWebhooks() error {
	if o.WebhookPort < 1 || o.WebhookPort > 65535 {
		return fmt.Errorf("--webhook-port %d: it must be between 1 and 65535", o.WebhookPort)
	}
	if err := either("--webhook-failure-policy", o.WebhookFailurePolicy, string(admissionregistrationv1.Fail), string(admissionregistrationv1.Ignore)); err != nil {
		return err
	}
	if o.WebhookTimeoutSeconds < 1 || o.WebhookTimeoutSeconds > 30 {
		return fmt.Errorf("--webhook-timeout-seconds %d: it must be 1 to 30", o.WebhookTimeoutSeconds)
	}
	_, err := o.webhookSettings()

	return err
}

// webhookSettings are the flags of the registration.
func (o *Options) webhookSettings() (serving.Settings, error) {
	s := serving.Settings{FailurePolicy: admissionregistrationv1.FailurePolicyType(o.WebhookFailurePolicy), TimeoutSeconds: o.WebhookTimeoutSeconds}
	var err error
	if s.NamespaceSelector, err = serving.ParseSelector(o.WebhookNamespaceSelector); err != nil {
		return s, fmt.Errorf("--webhook-namespace-selector %q: %w", o.WebhookNamespaceSelector, err)
	}
	if s.ObjectSelector, err = serving.ParseSelector(o.WebhookObjectSelector); err != nil {
		return s, fmt.Errorf("--webhook-object-selector %q: %w", o.WebhookObjectSelector, err)
	}

	return s, nil
}

// validatePprof allows profiles on a loopback address only: they are served without authentication,
// use processor time, and show the command line.
func (o *Options) validatePprof() error {
	if o.PprofAddress == "" || o.PprofAddress == "0" || isLoopback(o.PprofAddress) {
		return nil
	}

	return fmt.Errorf("--pprof-bind-address %q: profiles are served on a loopback address only; use 127.0.0.1:PORT, and kubectl port-forward from elsewhere", o.PprofAddress)
}

func either(flag, value, this, that string) error {
	if value != this && value != that {
		return fmt.Errorf("%s %q: it must be %s or %s", flag, value, this, that)
	}

	return nil
}

// ValidateControllers rejects names of components that do not exist.
func ValidateControllers(names []string) error {
	if len(names) == 0 {
		return errors.New("--controllers is empty: name at least one of " + strings.Join(Parts(), ", "))
	}
	for _, name := range names {
		if !slices.Contains(Parts(), name) {
			return fmt.Errorf("--controllers: unknown controller %q; known are %s", name, strings.Join(Parts(), ", "))
		}
	}

	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)

	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func ownNamespace() string {
	if data, err := os.ReadFile(namespaceFile); err == nil {
		if ns := strings.TrimSpace(string(data)); ns != "" {
			return ns
		}
	}

	return names.Namespace
}
