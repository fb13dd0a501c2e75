package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/internal/decide/verdict"
)

// Reasons that are counted for what could not be decided.
const (
	reasonUndecodable = "Undecodable"
	reasonBlind       = "Blind"
)

// Admit judges a change of an object; before is nil when it is new. An error
// means that what the verdict depends on could not be seen.
type Admit[T any] func(ctx context.Context, before, after *T) (verdict.Verdict, error)

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

// Handle decodes, decides and answers.
func (h *Handler[T]) Handle(ctx context.Context, r admission.Request) admission.Response {
	started := time.Now()
	observe := func(decision, reason string) {
		h.metrics.Observe(h.kind, string(r.Operation), decision, reason, time.Since(started))
	}

	before, after, err := h.decode(r)
	if err != nil {
		observe(Errored, reasonUndecodable)

		return admission.Errored(http.StatusBadRequest, err)
	}
	v, err := h.admit(ctx, before, after)
	if err != nil {
		observe(Errored, reasonBlind)

		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("cannot judge %s %s/%s: %w", h.kind, r.Namespace, r.Name, err))
	}
	if v.Allowed() {
		observe(Allowed, "")

		return admission.Allowed("").WithWarnings(v.WarningStrings()...)
	}
	observe(Denied, v.Reason())
	ctrl.LoggerFrom(ctx).V(1).Info("Denied an object", "kind", h.kind, "namespace", r.Namespace, "name", r.Name, "reason", v.Message())

	return deny(r, v)
}

// decode returns the stored object, nil on creation, and the new one.
func (h *Handler[T]) decode(r admission.Request) (before, after *T, err error) {
	after = new(T)
	if err := json.Unmarshal(r.Object.Raw, after); err != nil {
		return nil, nil, fmt.Errorf("cannot read %s %s/%s: %w", h.kind, r.Namespace, r.Name, err)
	}
	if r.Operation != admissionv1.Update {
		return nil, after, nil
	}
	before = new(T)
	if err := json.Unmarshal(r.OldObject.Raw, before); err != nil {
		return nil, nil, fmt.Errorf("cannot read the stored %s %s/%s: %w", h.kind, r.Namespace, r.Name, err)
	}

	return before, after, nil
}

// deny says no in the way the API server says it for built-in kinds: the
// message is the first violation, and every one of them is a cause with the
// field that it is about. How to mend them goes along as warnings, which
// clients show without mistaking them for the verdict.
func deny(r admission.Request, v verdict.Verdict) admission.Response {
	causes := make([]metav1.StatusCause, 0, len(v.Problems))
	var advice verdict.Verdict
	for _, p := range v.Problems {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: p.Field, Message: p.Message})
		advice.Warnings = append(advice.Warnings, verdict.Warning{Field: p.Field, Message: p.Fix})
	}

	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: false,
		Result: &metav1.Status{
			Status:  metav1.StatusFailure,
			Code:    http.StatusUnprocessableEntity,
			Reason:  metav1.StatusReasonInvalid,
			Message: v.Message(),
			Details: &metav1.StatusDetails{Name: r.Name, Group: r.Kind.Group, Kind: r.Kind.Kind, Causes: causes},
		},
		Warnings: advice.WarningStrings(),
	}}
}
