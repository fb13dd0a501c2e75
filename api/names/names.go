// Package names has what Arbor's own objects are called in a cluster, for whoever
// makes them and whoever looks for them: the manager, its webhooks, the commands.
// The chart says the same.
package names

const (
	// Arbor is what it calls itself: as who manages an object, as field manager, and as
	// the name of the ValidatingWebhookConfiguration unless a flag says otherwise.
	Arbor = "arbor"
	// ManagedByLabel marks the objects that Arbor may change or replace.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// NameLabel marks what was installed as Arbor.
	NameLabel = "app.kubernetes.io/name"
	// ComponentLabel tells the pods of the manager from those of the scheduler.
	ComponentLabel = "app.kubernetes.io/component"
	// VersionLabel is the release that an object was installed with.
	VersionLabel = "app.kubernetes.io/version"

	// SkipAdmissionLabel on a namespace, with the value "true", keeps requests in it from
	// Arbor's webhooks, in an emergency.
	SkipAdmissionLabel = "arbor-control.dev/skip-admission"
	// RegistrationAnnotation of the ValidatingWebhookConfiguration identifies the version
	// and the flags of the managers that registered the webhooks.
	RegistrationAnnotation = "arbor-control.dev/webhook-registration"

	// Namespace of the following, unless a flag says otherwise.
	Namespace = "arbor-system"
	// Lease of whoever leads, unless a flag says otherwise.
	Lease = "arbor-manager"
	// Scheduler is arbor-scheduler: its component, its lease, and what pods name in
	// spec.schedulerName unless a flag says otherwise.
	Scheduler = "arbor-scheduler"
	// WebhookSecret has the certificate authority that replicas share.
	WebhookSecret = "arbor-webhook-ca" //nolint:gosec // the name of a secret is none
)
