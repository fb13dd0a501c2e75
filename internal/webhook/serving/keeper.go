package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistrationv1ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/arbor-control/arbor/api/names"
	"github.com/arbor-control/arbor/internal/kube"
)

// takeOver is how often a replica checks whether the registered replica still answers. Behind a
// Service this is not necessary.
const takeOver = 5 * time.Second

// Options of a Keeper.
type Options struct {
	// Namespace of the Secret.
	Namespace string
	// Configuration is the name of the ValidatingWebhookConfiguration.
	Configuration string
	// Address is how the API server reaches this replica.
	Address Address
	// Webhooks to register.
	Webhooks []Webhook
	// Settings of all webhooks.
	Settings Settings
	// Life of a certificate authority.
	Life time.Duration
	// Elected returns a channel that is closed once this manager leads, or at once
	// without leader election.
	Elected func() <-chan struct{}
	// LeaderElection is that no other manager leads at the same time.
	LeaderElection bool
	// Draining reports whether this manager is about to end: it has released its lease, and
	// another one may lead.
	Draining func() bool
}

// A Keeper keeps the webhooks of one replica reachable.
type Keeper struct {
	options Options
	client  client.Client
	clock   clock.PassiveClock
	started healthz.Checker

	claim   claim
	foreign bool // the registration is that of other managers

	authority  atomic.Pointer[authority]
	leaf       atomic.Pointer[leaf]
	registered atomic.Bool
}

// New returns a Keeper. The client must read the cluster itself, not a cache:
// the Keeper looks seldom, and must not decide on something old.
func New(c client.Client, o Options) *Keeper {
	return &Keeper{options: o, client: c, clock: clock.RealClock{}}
}

// Prepare makes sure that there is a certificate to show. It must be called
// before the webhook server starts.
func (k *Keeper) Prepare(ctx context.Context) error {
	// Another replica may be making the Secret at this very moment.
	return kube.RetryOnConflict(ctx, func(ctx context.Context) error {
		_, err := k.certify(ctx)

		return err
	})
}

// GetCertificate is for the webhook server's TLS configuration.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	l := k.leaf.Load()
	if l == nil {
		return nil, errors.New("there is no certificate yet")
	}

	return l.tls, nil
}

// Certificates are those whose end would be the end of admission: the authority
// that replicas share, and what this one shows.
func (k *Keeper) Certificates() []Certificate {
	a, l := k.authority.Load(), k.leaf.Load()
	if a == nil || l == nil {
		return nil
	}

	return []Certificate{
		{Name: "authority", Expiry: a.current.Cert.NotAfter, Life: a.life},
		{Name: "serving", Expiry: l.tls.Leaf.NotAfter, Life: l.life},
	}
}

// Ready is a readiness check: it succeeds once this replica is registered with the API server.
func (k *Keeper) Ready(*http.Request) error {
	if !k.registered.Load() {
		return errors.New("the webhooks are not registered yet")
	}

	return nil
}

// SetupWithManager makes every replica, leading or not, look at the Secret and
// the registration whenever they change, and when something is due.
func (k *Keeper) SetupWithManager(mgr ctrl.Manager) error {
	k.started = mgr.GetWebhookServer().StartedChecker()
	everybody := false
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})

	return ctrl.NewControllerManagedBy(mgr).
		Named("webhook-serving").
		WithOptions(controller.Options{NeedLeaderElection: &everybody, MaxConcurrentReconciles: 1}).
		Watches(&corev1.Secret{}, one).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, one).
		WatchesRawSource(source.Func(k.awaitElection)).
		Complete(kube.Patient(k))
}

// awaitElection has the registration reconciled once this manager leads.
func (k *Keeper) awaitElection(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		select {
		case <-k.options.Elected():
			queue.Add(reconcile.Request{})
		case <-ctx.Done():
		}
	}()

	return nil
}

// Reconcile puts the certificate and the registration right.
func (k *Keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	a, err := k.certify(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if k.started(nil) != nil {
		// A request that arrives before we listen would fail.
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil //nolint:nilerr // being early is not a failure
	}
	elsewhere, err := k.register(ctx, a.bundle())
	if err != nil {
		return reconcile.Result{}, err
	}
	after := k.due(a)
	if elsewhere {
		// No event shows that another replica does not answer any more.
		after = min(after, takeOver)
	}

	return reconcile.Result{RequeueAfter: after}, nil
}

// certify brings the shared authority and this replica's certificate up to
// date.
func (k *Keeper) certify(ctx context.Context) (authority, error) {
	now := k.clock.Now()
	secret := &corev1.Secret{}
	err := k.client.Get(ctx, client.ObjectKey{Namespace: k.options.Namespace, Name: names.WebhookSecret}, secret)
	if client.IgnoreNotFound(err) != nil {
		return authority{}, fmt.Errorf("cannot read Secret %s/%s: %w", k.options.Namespace, names.WebhookSecret, err)
	}

	a, broken := parseAuthority(secret.Data, k.options.Life)
	if broken != nil {
		if err == nil {
			ctrl.LoggerFrom(ctx).Info("The webhook Secret is invalid and is created again", "secret", names.WebhookSecret, "reason", broken.Error())
		}
		if a, err = k.replace(ctx, secret, now); err != nil {
			return authority{}, err
		}
	}
	a, changed, err := a.next(now)
	if err != nil {
		return authority{}, err
	}
	if changed {
		ctrl.LoggerFrom(ctx).Info("Rotating the webhook certificate authority")
		if err := k.store(ctx, secret, a); err != nil {
			return authority{}, err
		}
	}

	if l := k.leaf.Load(); !l.good(a, now) {
		l, err := newLeaf(a, k.options.Address.hosts(), now)
		if err != nil {
			return authority{}, err
		}
		k.leaf.Store(l)
	}
	k.authority.Store(&a)

	return a, nil
}

// replace stores a new authority where there is none that can be used.
func (k *Keeper) replace(ctx context.Context, secret *corev1.Secret, now time.Time) (authority, error) {
	// The current certificate of this replica must stay trusted until the replica uses another one.
	a := authority{life: k.options.Life}
	if l := k.leaf.Load(); l != nil {
		a.current = l.signer
	}
	a, err := a.replaced(now)
	if err != nil {
		return authority{}, err
	}

	return a, k.store(ctx, secret, a)
}

// store writes the Secret, and fails with a conflict when another replica was
// first.
func (k *Keeper) store(ctx context.Context, secret *corev1.Secret, a authority) error {
	data, err := a.data()
	if err != nil {
		return err
	}
	secret.Data = data
	if secret.ResourceVersion != "" {
		err = k.client.Update(ctx, secret)
	} else {
		secret.ObjectMeta = metav1.ObjectMeta{
			Namespace: k.options.Namespace,
			Name:      names.WebhookSecret,
			Labels:    map[string]string{names.ManagedByLabel: names.Arbor},
		}
		err = k.client.Create(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("cannot write Secret %s/%s: %w", k.options.Namespace, names.WebhookSecret, err)
	}

	return nil
}

// register registers the webhooks with the API server, and reports whether another replica serves
// or registers them.
func (k *Keeper) register(ctx context.Context, bundle []byte) (elsewhere bool, err error) {
	want := registration(k.options, bundle)
	have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err = k.client.Get(ctx, client.ObjectKey{Name: k.options.Configuration}, have)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot read ValidatingWebhookConfiguration %s: %w", k.options.Configuration, err)
	}
	own := want.Annotations[names.RegistrationAnnotation]
	answers := func(address string) bool { return listens(ctx, address) }
	foreign := !k.claim.allowed(have, own, k.elected(), k.options.LeaderElection, k.clock.Now(), answers)
	if foreign && !k.foreign {
		ctrl.LoggerFrom(ctx).Info("The webhooks are registered by managers of another version or with other flags, and stay so while those lead",
			"configuration", k.options.Configuration, "own", own, "stored", have.Annotations[names.RegistrationAnnotation])
	}
	k.foreign = foreign
	if foreign {
		return true, k.renew(ctx, have, bundle)
	}
	if by := have.Labels[names.ManagedByLabel]; by != "" && by != names.Arbor {
		// The installation of Arbor owns the object and removes it. The manager owns only its
		// contents.
		want.Labels = nil
	}
	if k.registered.Load() {
		elsewhere = keepAddresses(want, have.Webhooks, answers)
	}

	return elsewhere, k.apply(ctx, want)
}

// renew writes the trust of today to the registration of other managers.
func (k *Keeper) renew(ctx context.Context, have *admissionregistrationv1.ValidatingWebhookConfiguration, bundle []byte) error {
	if trusts(have, bundle) {
		k.registered.Store(true)

		return nil
	}
	want, err := adopted(have, bundle)
	if err != nil {
		return err
	}
	if have.Labels[names.ManagedByLabel] != names.Arbor {
		want.Labels = nil
	}

	return k.apply(ctx, want)
}

// apply writes the registration.
func (k *Keeper) apply(ctx context.Context, want *admissionregistrationv1ac.ValidatingWebhookConfigurationApplyConfiguration) error {
	// Applying what is already there changes nothing and causes no event.
	if err := k.client.Apply(ctx, want, client.ForceOwnership, client.FieldOwner(names.Arbor)); err != nil {
		return fmt.Errorf("cannot write ValidatingWebhookConfiguration %s: %w", k.options.Configuration, err)
	}
	k.registered.Store(true)
	if !k.foreign {
		k.claim.done(k.clock.Now())
	}

	return nil
}

// elected reports whether this manager leads.
func (k *Keeper) elected() bool {
	if k.options.Draining != nil && k.options.Draining() {
		return false
	}
	select {
	case <-k.options.Elected():
		return true
	default:
		return false
	}
}

// due is how long nothing has to be done.
func (k *Keeper) due(a authority) time.Duration {
	now := k.clock.Now()
	next := a.renewal()
	for _, t := range []time.Time{k.leaf.Load().renew, a.settled()} {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	if a.previous != nil && a.previous.Cert.NotAfter.After(now) && a.previous.Cert.NotAfter.Before(next) {
		next = a.previous.Cert.NotAfter
	}

	return max(next.Sub(now), 0) + 100*time.Millisecond
}
