package serving

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/arbor-control/arbor/api/names"
)

// Settings are what the operator decides about all webhooks.
type Settings struct {
	// FailurePolicy is what the API server does when no webhook answers.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// TimeoutSeconds is how long the API server waits for an answer.
	TimeoutSeconds int32
	// NamespaceSelector and ObjectSelector select the requests that are reviewed. Those
	// in namespaces with [names.SkipAdmissionLabel] never are.
	NamespaceSelector, ObjectSelector metav1.LabelSelector
}

// DefaultSettings review everything, and reject what cannot be reviewed. An answer takes
// a few milliseconds.
func DefaultSettings() Settings {
	return Settings{FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: 5}
}

// ParseSelector reads a label selector as kubectl takes it, such as "team in (a,b)", or as
// JSON, such as {"matchLabels": {"team": "a"}}.
func ParseSelector(text string) (metav1.LabelSelector, error) {
	if !strings.HasPrefix(text, "{") {
		parsed, err := metav1.ParseToLabelSelector(text)
		if err != nil {
			return metav1.LabelSelector{}, fmt.Errorf("write a label selector such as \"team=a,tier notin (test)\": %w", err)
		}

		return *parsed, nil
	}
	var s metav1.LabelSelector
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf(`write a label selector such as {"matchLabels": {"team": "a"}}: %w`, err)
	}
	if errs := validation.ValidateLabelSelector(&s, validation.LabelSelectorValidationOptions{}, nil); len(errs) > 0 {
		return s, errs.ToAggregate()
	}

	return s, nil
}

// namespaces are those whose requests are reviewed.
func (s Settings) namespaces() *metav1ac.LabelSelectorApplyConfiguration {
	return selector(s.NamespaceSelector).WithMatchExpressions(metav1ac.LabelSelectorRequirement().
		WithKey(names.SkipAdmissionLabel).WithOperator(metav1.LabelSelectorOpNotIn).WithValues("true"))
}

func selector(s metav1.LabelSelector) *metav1ac.LabelSelectorApplyConfiguration {
	ac := metav1ac.LabelSelector()
	if len(s.MatchLabels) > 0 {
		ac.WithMatchLabels(s.MatchLabels)
	}
	for _, e := range s.MatchExpressions {
		ac.WithMatchExpressions(metav1ac.LabelSelectorRequirement().WithKey(e.Key).WithOperator(e.Operator).WithValues(e.Values...))
	}

	return ac
}
