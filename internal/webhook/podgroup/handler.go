// Package podgroup admits PodGroups.
package podgroup

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/webhook"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// Registration is how the API server calls this webhook.
var Registration = serving.Webhook{
	Name:     "podgroups.admission.arbor",
	Path:     "/validate-scheduling-run-ai-v2alpha2-podgroup",
	Group:    v2alpha2.GroupVersion.Group,
	Version:  v2alpha2.GroupVersion.Version,
	Resource: "podgroups",
}

// A handler reads PriorityClasses, and checks the permission to use them.
type handler struct {
	guard   decide.Guard
	reviews client.Writer
	// live reads from the API server: of a PriorityClass and a PodGroup in one
	// file, a cache may not have the first when the second is created.
	live client.Reader
	// timeout of the requests to the API server.
	timeout time.Duration
}

// NewHandler returns the handler of the webhook. It creates SubjectAccessReviews
// with reviews and gets PriorityClasses with live. Its requests take less than timeout, which
// is how long the API server waits, so that the client gets a reason.
func NewHandler(guard decide.Guard, timeout time.Duration, reviews client.Writer, live client.Reader, m *webhook.Metrics) admission.Handler {
	h := &handler{guard: guard, reviews: reviews, live: live, timeout: timeout * 6 / 10}

	return webhook.NewHandler(v2alpha2.PodGroupKind, m, h.admit)
}

func (h *handler) admit(ctx context.Context, c webhook.Change[v2alpha2.PodGroup]) (verdict.Verdict, error) {
	v := decide.Admit(c.Before, c.After)
	class := decide.NewClass(c.Before, c.After)
	if class == "" || !v.Allowed() {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()

	if h.guard.Protects(class) {
		allowed, err := h.mayUse(ctx, c.User, class)
		if err != nil {
			return v, err
		}
		if !allowed {
			v.Problems = append(v.Problems, decide.ClassForbidden(c.After, c.User.Username))

			return v, nil
		}
	}
	if h.missing(ctx, class) {
		v.Warnings = append(v.Warnings, decide.ClassNotFound(class))
	}

	return v, nil
}

// mayUse reports whether a user may use a PriorityClass. The permission is that
// for the cluster: a PriorityClass has no namespace, and a Role with wildcards
// in the user's own namespace must not include it.
func (h *handler) mayUse(ctx context.Context, user authenticationv1.UserInfo, class string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "use", Group: schedulingv1.GroupName, Resource: "priorityclasses", Name: class,
		},
	}}
	for key, values := range user.Extra {
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := h.reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("cannot review whether user %q may use PriorityClass %q: %w", user.Username, class, err)
	}

	return review.Status.Allowed, nil
}

// missing reports whether a PriorityClass does not exist. If that is unknown because of an error,
// the group is neither rejected nor warned about.
func (h *handler) missing(ctx context.Context, class string) bool {
	err := h.live.Get(ctx, client.ObjectKey{Name: class}, &schedulingv1.PriorityClass{})
	if client.IgnoreNotFound(err) != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot get a PriorityClass", "name", class)
	}

	return apierrors.IsNotFound(err)
}
