package serving

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/arbor-control/arbor/api/names"
)

// A Webhook is one kind of object that is admitted here.
type Webhook struct {
	// Name of the webhook: at least three words with dots.
	Name string
	// Path that its handler serves.
	Path string
	// Group, Version and Resource that it admits on creation and update.
	Group, Version, Resource string
	// Only are match conditions of this webhook, in addition to those of all webhooks.
	Only []Condition
}

// A Condition is a CEL expression over object, oldObject and request.
type Condition struct{ Name, Expression string }

// An Address is how the API server reaches the webhooks: a Service in the
// cluster or, when Service is empty, this host.
type Address struct {
	Service   string
	Namespace string
	Host      string
	Port      int
}

// hosts are the names that a serving certificate must speak for.
func (a Address) hosts() []string {
	if a.Service == "" {
		return []string{a.Host}
	}

	return []string{a.Service + "." + a.Namespace + ".svc", a.Service + "." + a.Namespace + ".svc.cluster.local"}
}

func (a Address) client(path string, bundle []byte) *admissionregistrationv1ac.WebhookClientConfigApplyConfiguration {
	c := admissionregistrationv1ac.WebhookClientConfig().WithCABundle(bundle...)
	if a.Service == "" {
		u := url.URL{Scheme: "https", Host: fmt.Sprintf("%s:%d", a.Host, a.Port), Path: path}

		return c.WithURL(u.String())
	}

	return c.WithService(admissionregistrationv1ac.ServiceReference().WithName(a.Service).WithNamespace(a.Namespace).WithPath(path))
}

// registration is what the cluster should know about our webhooks.
//
// By default they fail closed, because an unchecked tree is what they are there to
// prevent. They see as little as possible: never pods, never the status, never a
// deletion nor what follows it, so that nothing that is stored can get stuck while they
// are away.
func registration(o Options, bundle []byte) *admissionregistrationv1ac.ValidatingWebhookConfigurationApplyConfiguration {
	config := admissionregistrationv1ac.ValidatingWebhookConfiguration(o.Configuration).
		WithLabels(map[string]string{names.ManagedByLabel: names.Arbor})
	for _, w := range o.Webhooks {
		conditions := make([]*admissionregistrationv1ac.MatchConditionApplyConfiguration, 0, len(w.Only)+1)
		for _, c := range append([]Condition{{"not-being-deleted", "!has(object.metadata.deletionTimestamp)"}}, w.Only...) {
			conditions = append(conditions, admissionregistrationv1ac.MatchCondition().WithName(c.Name).WithExpression(c.Expression))
		}
		config.WithWebhooks(admissionregistrationv1ac.ValidatingWebhook().
			WithName(w.Name).
			WithClientConfig(o.Address.client(w.Path, bundle)).
			WithRules(admissionregistrationv1ac.RuleWithOperations().
				WithOperations(admissionregistrationv1.Create, admissionregistrationv1.Update).
				WithAPIGroups(w.Group).
				WithAPIVersions(w.Version).
				WithResources(w.Resource).
				WithScope(admissionregistrationv1.NamespacedScope)).
			WithMatchConditions(conditions...).
			WithFailurePolicy(o.Settings.FailurePolicy).
			WithMatchPolicy(admissionregistrationv1.Equivalent).
			WithNamespaceSelector(o.Settings.namespaces()).
			WithObjectSelector(selector(o.Settings.ObjectSelector)).
			WithSideEffects(admissionregistrationv1.SideEffectClassNone).
			WithTimeoutSeconds(o.Settings.TimeoutSeconds).
			WithAdmissionReviewVersions("v1"))
	}

	return config.WithAnnotations(map[string]string{names.RegistrationAnnotation: fingerprint(config.Webhooks)})
}

// keepAddresses makes the registration point where the stored one points, for each webhook that is
// in both and answers there. Replicas on different hosts would otherwise take the address from each
// other forever. It reports whether any webhook is served by another replica now.
func keepAddresses(want *admissionregistrationv1ac.ValidatingWebhookConfigurationApplyConfiguration,
	have []admissionregistrationv1.ValidatingWebhook, answers func(address string) bool,
) (elsewhere bool) {
	urls := map[string]*string{}
	for _, w := range have {
		urls[w.Name] = w.ClientConfig.URL
	}
	for i := range want.Webhooks {
		w := &want.Webhooks[i]
		theirs, ours := urls[*w.Name], w.ClientConfig.URL
		if theirs != nil && ours != nil && *theirs != *ours && answers(*theirs) {
			w.ClientConfig.URL = theirs
			elsewhere = true
		}
	}

	return elsewhere
}

// listens reports whether a server listens at a URL.
func listens(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return false
	}

	return conn.Close() == nil
}
