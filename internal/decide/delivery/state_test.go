package delivery_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestLosesState(t *testing.T) {
	now, later, failed := metav1.Now(), metav1.NewTime(time.Now().Add(time.Minute)), "failed"
	type state = enov1.ResourceState
	cases := map[string]struct {
		reason        string
		known, stored state
		want          bool
	}{
		"Same":       {"Nothing is lost.", state{Reconciled: true}, state{Reconciled: true}, false},
		"Reconciled": {"It would be delivered again.", state{Reconciled: true}, state{}, true},
		"Deleted":    {"A Patch would delete again.", state{Deleted: true}, state{}, true},
		"Ready":      {"The composition would not be ready.", state{Ready: &now}, state{}, true},
		"UID":        {"Its object would not be known as delivered.", state{UID: "7"}, state{}, true},
		"Replaced":   {"It would be replaced again.", state{Replaced: "7"}, state{}, true},
		"Gone":       {"Another manager has deleted the object.", state{UID: "7"}, state{Deleted: true}, false},
		"Later":      {"Two managers see it at different times.", state{Ready: &now}, state{Ready: &later}, false},
		"Error":      {"Two managers meet different errors.", state{}, state{ReconciliationError: &failed}, false},
		"Ahead":      {"Another manager is ahead.", state{}, state{Reconciled: true, Ready: &now}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := delivery.LosesState(tc.known, tc.stored); got != tc.want {
				t.Errorf("%s LosesState is %t", tc.reason, got)
			}
		})
	}
}
