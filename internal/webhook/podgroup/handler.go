// Package podgroup admits PodGroups.
package podgroup

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

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/webhook"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// reasonUndecodable is counted for objects that cannot be read.
const reasonUndecodable = "Undecodable"

// Registration is how the API server knows this webhook.
var Registration = serving.Webhook{
	Name:     "podgroups.admission.arbor",
	Path:     "/validate-scheduling-run-ai-v2alpha2-podgroup",
	Group:    v2alpha2.GroupVersion.Group,
	Version:  v2alpha2.GroupVersion.Version,
	Resource: "podgroups",
}

// A Handler answers admission requests.
type Handler struct {
	metrics *webhook.Metrics
}

// NewHandler returns a Handler.
func NewHandler(m *webhook.Metrics) *Handler {
	return &Handler{metrics: m}
}

// Handle decodes, decides and answers.
func (h *Handler) Handle(ctx context.Context, r admission.Request) admission.Response {
	started := time.Now()
	observe := func(decision, reason string) {
		h.metrics.Observe(v2alpha2.PodGroupKind, string(r.Operation), decision, reason, time.Since(started))
	}

	before, after, err := decode(r)
	if err != nil {
		observe(webhook.Errored, reasonUndecodable)

		return admission.Errored(http.StatusBadRequest, err)
	}
	verdict := decide.Admit(before, after)
	if verdict.Allowed() {
		observe(webhook.Allowed, "")

		return admission.Allowed("").WithWarnings(verdict.WarningStrings()...)
	}
	observe(webhook.Denied, verdict.Reason())
	ctrl.LoggerFrom(ctx).V(1).Info("Denied a PodGroup", "namespace", r.Namespace, "name", r.Name, "reason", verdict.Message())

	return deny(r, verdict)
}

// decode returns the stored object, nil on creation, and the new one.
func decode(r admission.Request) (before, after *v2alpha2.PodGroup, err error) {
	after = &v2alpha2.PodGroup{}
	if err := json.Unmarshal(r.Object.Raw, after); err != nil {
		return nil, nil, fmt.Errorf("cannot read PodGroup %s/%s: %w", r.Namespace, r.Name, err)
	}
	if r.Operation != admissionv1.Update {
		return nil, after, nil
	}
	before = &v2alpha2.PodGroup{}
	if err := json.Unmarshal(r.OldObject.Raw, before); err != nil {
		return nil, nil, fmt.Errorf("cannot read the stored PodGroup %s/%s: %w", r.Namespace, r.Name, err)
	}

	return before, after, nil
}

// deny says no in the way the API server says it for built-in kinds: the
// message is the first violation, and every one of them is a cause with the
// field that it is about. How to mend them goes along as warnings, which
// clients show without mistaking them for the verdict.
func deny(r admission.Request, v decide.Verdict) admission.Response {
	causes := make([]metav1.StatusCause, 0, len(v.Problems))
	var advice decide.Verdict
	for _, p := range v.Problems {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: p.Field, Message: p.Message})
		advice.Warnings = append(advice.Warnings, decide.Warning{Field: p.Field, Message: p.Fix})
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
