package health

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// A Part is something that a manager can run.
type Part struct {
	Name string
	// Definitions are the CRDs of its kinds, as this release has them.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Webhooks are the names of those that it serves.
	Webhooks []string
}

// Facts are what was found in a cluster. A nil pointer means that the object does not exist.
type Facts struct {
	// Namespace of Arbor's own objects.
	Namespace string
	// Parts that this release has.
	Parts []Part

	Server      Found[*version.Version]
	Definitions Found[map[string]*apiextensionsv1.CustomResourceDefinition]
	// Deployment of the manager. There is none if it runs elsewhere.
	Deployment Found[*appsv1.Deployment]
	Lease      Found[*coordinationv1.Lease]
	Webhooks   Found[*admissionregistrationv1.ValidatingWebhookConfiguration]
	// Secret of the webhooks' certificate authority.
	Secret Found[*corev1.Secret]
	// Answers are the results for objects that a webhook must reject, by the name of the webhook:
	// "" if it rejected.
	Answers Found[map[string]string]
	// Lacking are permissions that the manager would need and does not have.
	Lacking   Found[[]string]
	Scheduler Scheduler
	// Backlog is what waits, by kind.
	Backlog []Backlog
}

// Found is what was found, or why nothing could be.
type Found[T any] struct {
	Is  T
	Err error
}

// A Backlog is what waits of one kind.
type Backlog struct {
	Kind  string
	Total int
	// Waiting are those that are not what they should be, and Oldest since when the
	// first of them is.
	Waiting int
	Oldest  time.Time
	// First is the one that waits longest, and Why.
	First, Why string
	Err        error
}
