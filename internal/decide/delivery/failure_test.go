package delivery_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/delivery"
)

func TestFailure(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "x", errors.New("changed"))
	cases := map[string]struct {
		reason            string
		failure           delivery.Failure
		passing, reported bool
	}{
		"First":     {reason: "The first failure is in the state, without an event.", failure: delivery.Failure{Err: errors.New("x"), Tries: 2}},
		"Repeated":  {reason: "Users need to know.", failure: delivery.Failure{Err: errors.New("x"), Tries: 3}, reported: true},
		"Permanent": {reason: "No attempt can succeed.", failure: delivery.Failure{Err: errors.New("x"), Permanent: true}, reported: true},
		"Stop":      {reason: "The manager stops.", failure: delivery.Failure{Err: errors.New("x"), Canceled: true}, passing: true},
		"Conflict":  {reason: "Without overrides, a conflict is an error.", failure: delivery.Failure{Err: conflict}},
		"Overrides": {reason: "They are evaluated with the new version.", failure: delivery.Failure{Err: conflict, BaseVersion: "5", Tries: 2}, passing: true},
		"Fight":     {reason: "Another client is faster each time.", failure: delivery.Failure{Err: conflict, BaseVersion: "5", Tries: 3}, reported: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if passing, reported := tc.failure.IsPassing(), tc.failure.IsReported(); passing != tc.passing || reported != tc.reported {
				t.Errorf("%s\nIsPassing = %v, IsReported = %v", tc.reason, passing, reported)
			}
		})
	}
}

func TestFailedState(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_000, 0))
	failed := enov1.ResourceState{ReconciliationError: new("x")}
	cases := map[string]struct {
		reason   string
		settings delivery.Settings
		going    bool
		want     enov1.ResourceState
	}{
		"Closed":     {reason: "The error holds up the synthesis.", want: failed},
		"Open":       {reason: "The error is passed over.", settings: delivery.Settings{FailOpen: true}, want: enov1.ResourceState{ReconciliationError: new("x"), Reconciled: true, Ready: &now}},
		"Going":      {reason: "So is that of a deletion.", settings: delivery.Settings{FailOpen: true}, going: true, want: enov1.ResourceState{ReconciliationError: new("x"), Reconciled: true, Ready: &now, Deleted: true}},
		"Foreground": {reason: "A deletion in the foreground is waited for.", settings: delivery.Settings{FailOpen: true, Foreground: true}, going: true, want: failed},
		"Present":    {reason: "It does not matter for other objects.", settings: delivery.Settings{FailOpen: true, Foreground: true}, want: enov1.ResourceState{ReconciliationError: new("x"), Reconciled: true, Ready: &now}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &delivery.Resource{Settings: tc.settings}
			if diff := cmp.Diff(tc.want, r.FailedState("x", tc.going, now)); diff != "" {
				t.Errorf("%s\nFailedState(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
