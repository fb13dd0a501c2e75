package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Reasons of requests that could not be decided, for the metrics.
const (
	reasonUndecodable = "Undecodable"
	reasonBlind       = "Blind"
)

// maxCauses is how many problems an answer lists.
const maxCauses = 10

// retryAfter is how long a client waits before it repeats a request that could
// not be decided.
const retryAfter = 1 // second

// A Change is what an admission request wants to do to an object.
type Change[T any] struct {
	// Before is the stored object, nil on creation.
	Before *T
	// After is the object as it would be stored.
	After *T
	// User is the author of the request.
	User authenticationv1.UserInfo
}

// Admit decides whether a change is allowed. An error means that something that
// the decision depends on could not be read: the request is then rejected, and
// the client may repeat it.
type Admit[T any] func(ctx context.Context, change Change[T]) (verdict.Verdict, error)

// A Handler answers admission requests for one kind.
type Handler[T any] struct {
	kind    string
	metrics *Metrics
	admit   Admit[T]
}

// NewHandler returns a Handler.
func NewHandler[T any](kind string, m *Metrics, admit Admit[T]) *Handler[T] {
	return &Handler[T]{kind: kind, metrics: m, admit: admit}
}

// Handle decodes a request, decides and answers.
func (h *Handler[T]) Handle(ctx context.Context, r admission.Request) admission.Response {
	started := time.Now()
	observe := func(decision, reason string) {
		h.metrics.Observe(h.kind, operation(r.Operation), decision, reason, time.Since(started))
	}

	change, err := h.decode(r)
	if err != nil {
		observe(Errored, reasonUndecodable)

		return admission.Errored(http.StatusBadRequest, err)
	}
	v, err := h.admit(ctx, change)
	if err != nil {
		observe(Errored, reasonBlind)
		err = fmt.Errorf("cannot decide about %s %s/%s, try again: %w", h.kind, r.Namespace, r.Name, err)
		ctrl.LoggerFrom(ctx).Error(err, "Rejected an object")

		return unavailable(r, err)
	}
	if v.Allowed() {
		observe(Allowed, "")

		return admission.Allowed("").WithWarnings(v.WarningStrings()...)
	}
	observe(Denied, v.Reason())
	ctrl.LoggerFrom(ctx).V(1).Info("Denied an object", "kind", h.kind, "namespace", r.Namespace, "name", r.Name, "reason", v.Message())

	return deny(r, v)
}

// operation is the value of a label for a request. Its author can write anything there.
func operation(o admissionv1.Operation) string {
	switch o {
	case admissionv1.Create, admissionv1.Update:
		return string(o)
	default:
		return "other"
	}
}

// decode reads the objects of a request. All kinds have namespaces; a request that names
// none, or another one than its object, is not from the API server.
func (h *Handler[T]) decode(r admission.Request) (Change[T], error) {
	change := Change[T]{After: new(T), User: r.UserInfo}
	if err := json.Unmarshal(r.Object.Raw, change.After); err != nil {
		return change, fmt.Errorf("cannot read %s %s/%s: %w", h.kind, r.Namespace, r.Name, err)
	}
	if err := h.sameNamespace(r, change.After); err != nil {
		return change, err
	}
	if r.Operation != admissionv1.Update {
		return change, nil
	}
	change.Before = new(T)
	if err := json.Unmarshal(r.OldObject.Raw, change.Before); err != nil {
		return change, fmt.Errorf("cannot read the stored %s %s/%s: %w", h.kind, r.Namespace, r.Name, err)
	}

	return change, h.sameNamespace(r, change.Before)
}

func (h *Handler[T]) sameNamespace(r admission.Request, object any) error {
	o, err := meta.Accessor(object)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read %s %s/%s: %w", h.kind, r.Namespace, r.Name, err)
	case r.Namespace == "":
		return fmt.Errorf("cannot decide about %s %s: the request has no namespace", h.kind, r.Name)
	case o.GetNamespace() != r.Namespace:
		return fmt.Errorf("cannot decide about %s %s/%s: the object has the namespace %q", h.kind, r.Namespace, r.Name, o.GetNamespace())
	default:
		return nil
	}
}

// unavailable rejects a request that could not be decided. Clients of Kubernetes
// repeat it by themselves.
func unavailable(r admission.Request, err error) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    http.StatusServiceUnavailable,
			Reason:  metav1.StatusReasonServiceUnavailable,
			Message: err.Error(),
			Details: &metav1.StatusDetails{Name: r.Name, Group: r.Kind.Group, Kind: r.Kind.Kind, RetryAfterSeconds: retryAfter},
		},
	}}
}

// deny rejects an object in the way that the API server does for built-in
// kinds: the message is that of the first problem, and each problem is a cause
// with its field. The fixes are sent as warnings, which clients print next to
// the error. An answer lists the first problems only, and how many more there are.
func deny(r admission.Request, v verdict.Verdict) admission.Response {
	listed := v.Problems[:min(len(v.Problems), maxCauses)]
	causes := make([]metav1.StatusCause, 0, len(listed))
	var advice verdict.Verdict
	for _, p := range listed {
		kind := metav1.CauseTypeFieldValueInvalid
		if p.Forbidden {
			kind = metav1.CauseTypeForbidden
		}
		causes = append(causes, metav1.StatusCause{Type: kind, Field: p.Field, Message: p.Message})
		if p.Fix != "" {
			advice.Warnings = append(advice.Warnings, verdict.Warning{Field: p.Field, Message: p.Fix})
		}
	}
	warnings := advice.WarningStrings()
	if more := len(v.Problems) - len(listed); more > 0 {
		warnings = append(warnings, fmt.Sprintf("%d more problems are not listed", more))
	}
	code, reason := int32(http.StatusUnprocessableEntity), metav1.StatusReasonInvalid
	if v.Problems[0].Forbidden {
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}

	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false,
		Result: &metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    code,
			Reason:  reason,
			Message: v.Message(),
			Details: &metav1.StatusDetails{Name: r.Name, Group: r.Kind.Group, Kind: r.Kind.Kind, Causes: causes},
		},
		Warnings: warnings,
	}}
}
