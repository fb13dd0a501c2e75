package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/arbor-control/arbor/internal/decide/verdict"
	"github.com/arbor-control/arbor/internal/webhook"
)

func review(t *testing.T, operation, namespace string, objects ...string) admission.Request {
	t.Helper()
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Name: "a", Namespace: namespace, Operation: admissionv1.Operation(operation)}}
	for i, ns := range objects {
		data, err := json.Marshal(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: ns}})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			r.Object = runtime.RawExtension{Raw: data}
		} else {
			r.OldObject = runtime.RawExtension{Raw: data}
		}
	}

	return r
}

// The author of a request chooses its operation, and must not choose how many time
// series there are.
func TestOperations(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := webhook.NewHandler("T", webhook.NewMetrics(registry), func(context.Context, webhook.Change[corev1.ConfigMap]) (verdict.Verdict, error) {
		return verdict.Verdict{}, nil
	})
	for i := range 20 {
		h.Handle(t.Context(), review(t, fmt.Sprintf("MADE-UP-%d", i), "ns", "ns"))
	}
	h.Handle(t.Context(), review(t, "CREATE", "ns", "ns"))
	h.Handle(t.Context(), review(t, "UPDATE", "ns", "ns", "ns"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "arbor_admission_decisions_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "operation" {
					got[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	if len(got) != 3 || got["CREATE"] != 1 || got["UPDATE"] != 1 || got["other"] != 20 {
		t.Errorf("time series by operation: %v", got)
	}
}

// An object of another namespace than that of the request, or of none, is not decided
// about: the answer would name objects of other namespaces.
func TestNamespaces(t *testing.T) {
	cases := map[string]struct {
		reason, operation, namespace string
		objects                      []string
		decided                      bool
	}{
		"Create":      {"The API server sends both.", "CREATE", "ns", []string{"ns"}, true},
		"Update":      {"And that of the stored object.", "UPDATE", "ns", []string{"ns", "ns"}, true},
		"None":        {"In no namespace means in all of them.", "CREATE", "", []string{""}, false},
		"NoRequest":   {"The request needs one.", "CREATE", "", []string{"ns"}, false},
		"NoObject":    {"So does the object.", "CREATE", "ns", []string{""}, false},
		"Other":       {"They must agree.", "CREATE", "ns", []string{"other"}, false},
		"OtherBefore": {"The stored object counts, too.", "UPDATE", "ns", []string{"ns", "other"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decided := false
			h := webhook.NewHandler("T", webhook.NewMetrics(prometheus.NewRegistry()), func(context.Context, webhook.Change[corev1.ConfigMap]) (verdict.Verdict, error) {
				decided = true

				return verdict.Verdict{}, nil
			})
			answer := h.Handle(t.Context(), review(t, tc.operation, tc.namespace, tc.objects...))
			if decided != tc.decided || answer.Allowed != tc.decided {
				t.Errorf("%s\ndecided %t, answer %+v", tc.reason, decided, answer)
			}
			if !tc.decided && (answer.Result.Code != 400 || !strings.Contains(answer.Result.Message, "namespace")) {
				t.Errorf("%s\nanswer %+v", tc.reason, answer.Result)
			}
		})
	}
}

// A response lists ten problems, and the number of those that it leaves out.
func TestCauses(t *testing.T) {
	for problems, want := range map[int]struct {
		causes int
		more   string
	}{
		1:     {1, ""},
		10:    {10, ""},
		11:    {10, "1 more problems are not listed"},
		50000: {10, "49990 more problems are not listed"},
	} {
		t.Run(strconv.Itoa(problems), func(t *testing.T) {
			h := webhook.NewHandler("T", webhook.NewMetrics(prometheus.NewRegistry()), func(context.Context, webhook.Change[corev1.ConfigMap]) (verdict.Verdict, error) {
				var v verdict.Verdict
				for i := range problems {
					v.Problems = append(v.Problems, verdict.Problem{Reason: "Overlap", Field: "spec.cidr", Message: fmt.Sprintf("overlaps %d", i)})
				}

				return v, nil
			})
			answer := h.Handle(t.Context(), review(t, "CREATE", "ns", "ns"))
			if got := len(answer.Result.Details.Causes); got != want.causes || answer.Result.Message != "overlaps 0" {
				t.Errorf("%d causes, %q", got, answer.Result.Message)
			}
			if got := strings.Join(answer.Warnings, "; "); got != want.more {
				t.Errorf("warnings %q, want %q", got, want.more)
			}
		})
	}
}
