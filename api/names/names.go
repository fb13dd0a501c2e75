// Package names has the names and labels of Arbor's own objects in a cluster. The
// manager, its webhooks and the commands use them. The chart has the same names.
package names

const (
	// Arbor is the value of ManagedByLabel, the field manager, and the default name of the
	// ValidatingWebhookConfiguration.
	Arbor = "arbor"
	// ManagedByLabel marks the objects that Arbor may change or replace.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// NameLabel marks the objects of an installation of Arbor.
	NameLabel = "app.kubernetes.io/name"
	// ComponentLabel distinguishes the pods of the manager from those of the scheduler.
	ComponentLabel = "app.kubernetes.io/component"
	// VersionLabel is the release that an object was installed with.
	VersionLabel = "app.kubernetes.io/version"

	// SkipAdmissionLabel on a namespace, with the value "true", exempts requests in the
	// namespace from Arbor's webhooks, in an emergency.
	SkipAdmissionLabel = "arbor-control.dev/skip-admission"
	// RegistrationAnnotation of the ValidatingWebhookConfiguration identifies the version
	// and the flags of the managers that registered the webhooks.
	RegistrationAnnotation = "arbor-control.dev/webhook-registration"

	// Namespace is the default namespace of the following objects.
	Namespace = "arbor-system"
	// Lease is the default name of the Lease of the leader.
	Lease = "arbor-manager"
	// Scheduler is the component and the Lease of arbor-scheduler, and the default value of
	// spec.schedulerName for its pods.
	Scheduler = "arbor-scheduler"
	// WebhookSecret is the Secret with the certificate authority that replicas share.
	WebhookSecret = "arbor-webhook-ca" //nolint:gosec // the name of a Secret, not its value
)
