package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	things   = schema.GroupResource{Resource: "things"}
	conflict = apierrors.NewConflict(things, "x", errors.New("stale"))
)

func TestLostRace(t *testing.T) {
	exists, gone, broken := apierrors.NewAlreadyExists(things, "x"), apierrors.NewNotFound(things, "x"), errors.New("broken")
	wrapped := fmt.Errorf("cannot write: %w", conflict)
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"None":       {reason: "Nothing was lost."},
		"Conflict":   {reason: "Somebody changed it.", err: conflict, want: true},
		"Wrapped":    {reason: "Also if it is said in more words.", err: wrapped, want: true},
		"Exists":     {reason: "Somebody made it.", err: exists, want: true},
		"Gone":       {reason: "What is gone was not written by anybody.", err: gone},
		"Other":      {reason: "Other errors are errors.", err: broken},
		"Joined":     {reason: "Several races are races.", err: errors.Join(wrapped, exists), want: true},
		"Mixed":      {reason: "A race does not hide an error.", err: errors.Join(wrapped, broken)},
		"MixedDeep":  {reason: "However deep it is.", err: fmt.Errorf("cannot serve: %w", errors.Join(conflict, fmt.Errorf("first: %w", errors.Join(conflict, broken))))},
		"MixedFirst": {reason: "Whichever comes first.", err: errors.Join(broken, conflict)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := LostRace(tc.err); got != tc.want {
				t.Errorf("%s\nLostRace(%v) = %t", tc.reason, tc.err, got)
			}
		})
	}
}

// scripted answers one request after the other.
type scripted struct {
	results []reconcile.Result
	errs    []error
}

func (s *scripted) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	result, err := s.results[0], s.errs[0]
	s.results, s.errs = s.results[1:], s.errs[1:]

	return result, err
}

func TestPatient(t *testing.T) {
	broken, later := errors.New("broken"), reconcile.Result{RequeueAfter: time.Hour}
	cases := map[string]struct {
		reason string
		result reconcile.Result
		err    error
		want   reconcile.Result // if it is not retried soon
		again  bool
	}{
		"Fine":     {reason: "What went well is left alone."},
		"Later":    {reason: "So is when to look again.", result: later, want: later},
		"Broken":   {reason: "An error stays one: it is counted and logged.", err: broken},
		"Conflict": {reason: "A lost race is no error, but the same object comes again.", err: fmt.Errorf("cannot write: %w", conflict), again: true},
		"Mixed":    {reason: "An error beside a race is one.", err: errors.Join(conflict, broken)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Patient(&scripted{[]reconcile.Result{tc.result}, []error{tc.err}})
			got, err := r.Reconcile(t.Context(), reconcile.Request{})
			if tc.again {
				if err != nil || got.RequeueAfter < backoffBase || got.RequeueAfter > 2*backoffBase {
					t.Errorf("%s\nReconcile(...) = %+v, %v", tc.reason, got, err)
				}

				return
			}
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s\nReconcile(...) = %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// TestPatientGrows loses one race after the other, as with a cache that stays behind.
func TestPatientGrows(t *testing.T) {
	const races = 30
	s := &scripted{make([]reconcile.Result, races+3), make([]error, races+3)}
	for i := range s.errs {
		s.errs[i] = conflict
	}
	s.errs[races+1] = nil
	r := Patient(s)
	pause := func(name string) time.Duration {
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil {
			t.Fatal(err)
		}

		return result.RequeueAfter
	}
	var last time.Duration
	for range races {
		last = pause("x")
	}
	if last < longestPause || last > 2*longestPause {
		t.Errorf("after %d races: %s, want some %s", races, last, longestPause)
	}
	if other := pause("other"); other > 2*backoffBase {
		t.Errorf("another object waits for %s: pauses are of one object", other)
	}
	pause("x") // succeeds
	if again := pause("x"); again > 2*backoffBase {
		t.Errorf("after a success: %s, want a short pause", again)
	}
}
