// Package podgroup admits PodGroups.
package podgroup

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/api/scheduling/v2alpha2"
	decide "github.com/arbor-control/arbor/internal/decide/podgroup"
	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/webhook"
	"github.com/arbor-control/arbor/internal/webhook/serving"
)

// Registration is how the API server knows this webhook.
var Registration = serving.Webhook{
	Name:     "podgroups.admission.arbor",
	Path:     "/validate-scheduling-run-ai-v2alpha2-podgroup",
	Group:    v2alpha2.GroupVersion.Group,
	Version:  v2alpha2.GroupVersion.Version,
	Resource: "podgroups",
}

// NewHandler returns what answers it. A PodGroup is judged by itself alone.
func NewHandler(m *webhook.Metrics) admission.Handler {
	return webhook.NewHandler(v2alpha2.PodGroupKind, m, func(_ context.Context, before, after *v2alpha2.PodGroup) (verdict.Verdict, error) {
		return decide.Admit(before, after), nil
	})
}
