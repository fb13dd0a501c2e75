package controllertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxRounds is how many reconciliations there may be until nothing is left to do.
	maxRounds = 20
	// maxIdle is how many in a row may write nothing and want to wait.
	maxIdle = 3
)

// A Case is a controller with what it has to do.
type Case struct {
	Scheme *runtime.Scheme
	// Objects exist before the first reconciliation. Those of Status have a status of their own.
	Objects []client.Object
	Status  []client.Object
	// Index are functions that index objects in the cache.
	Index []func(context.Context, client.FieldIndexer) error
	// OnCreate changes objects as the API server does when they are created.
	OnCreate func(client.Object)
	// New returns what reconciles once.
	New func(*Server) Step
	// Final are the lists that must be the same in the end.
	Final func() []client.ObjectList
	// Advance moves the clock, by as long as the controller wants to wait.
	Advance func(time.Duration)
	// Dropped are requests that are not repeated if their object does not exist, with the reason.
	Dropped map[string]string
	// Ignored are requests whose errors are not returned, with the reason.
	Ignored map[string]string
}

// failures are the ways in which a request fails.
func failures() map[string]failure {
	resource := schema.GroupResource{Resource: "things"}

	return map[string]failure{
		"Conflict":  {reason: "Another client has written the object since it was read.", err: apierrors.NewConflict(resource, "x", errors.New("changed"))},
		"Forbidden": {reason: "The permission is missing, and may be granted later.", err: apierrors.NewForbidden(resource, "x", errors.New("RBAC"))},
		"Timeout":   {reason: "The API server is overloaded.", err: apierrors.NewTimeoutError("etcd", 1)},
		"Lost":      {reason: "The request is carried out, and its answer is lost.", err: context.DeadlineExceeded, after: true},
		"Gone":      {reason: "The object is deleted at the same time, or the cache does not have it yet.", err: apierrors.NewNotFound(resource, "x"), mayIgnore: true},
	}
}

// A failure is one way in which a request fails.
type failure struct {
	reason string
	err    error
	// after is true if the request is carried out before.
	after bool
	// mayIgnore is true if the controller need not try again: an event follows.
	mayIgnore bool
}

// Check lets every request fail in every way.
func Check(t *testing.T, c Case) {
	t.Helper()
	clean := newServer(t, c)
	run(t, c, clean)
	if t.Failed() {
		return
	}
	requests := slices.Clone(clean.requests)
	want := clean.state(t, c)
	if len(requests) == 0 || clean.writes == 0 {
		t.Fatal("the controller sends no requests, or writes nothing: this test tests nothing")
	}
	for name, f := range failures() {
		for i, request := range requests {
			if f.mayIgnore && c.Dropped[request] != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d %s", name, i, request), func(t *testing.T) {
				s := newServer(t, c)
				s.failure, s.at = &f, i
				run(t, c, s)
				if s.failure != nil {
					t.Fatalf("request %d was not sent: %v", i, s.requests)
				}
				if diff := cmp.Diff(want, s.state(t, c), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
					t.Errorf("%s\nIn the end, things are not as without the failure: -want, +got:\n%s", f.reason, diff)
				}
			})
		}
	}
}

// mustRetry fails the test if the request that failed has not been sent again, and has to be.
func (c *Case) mustRetry(t *testing.T, s *Server, failing *failure) {
	t.Helper()
	if !failing.mayIgnore && !s.sentAgain() && c.Ignored[s.failed] == "" {
		t.Errorf("%s\n%q fails, and the controller does not try again", failing.reason, s.failed)
	}
}

// advance lets the time pass that the controller waits, and reports whether there is something to
// wait for.
func (c *Case) advance(idle int, wait time.Duration) bool {
	if idle > maxIdle || c.Advance == nil || wait == 0 {
		return false
	}
	c.Advance(wait)

	return true
}

// run reconciles until nothing is left to do, also after the time that the controller waits. The
// request that fails must be sent again, now or in the next reconciliation.
func run(t *testing.T, c Case, s *Server) {
	t.Helper()
	reconciles := c.New(s)
	idle := 0
	for range maxRounds {
		before, failing := s.writes, s.failure
		result, err := reconciles(t.Context())
		if failing != nil && s.failure == nil {
			if err == nil && result.RequeueAfter == 0 {
				c.mustRetry(t, s, failing)
			}

			continue // an event, or the error, has it reconciled again
		}
		if err != nil {
			t.Fatalf("request %q: %v", s.failed, err)
		}
		if idle++; s.writes != before {
			idle = 0
		}
		if idle > 0 && !c.advance(idle, result.RequeueAfter) {
			return
		}
	}
	t.Fatalf("after %d reconciliations, there still is something to do: %v", maxRounds, s.requests)
}
