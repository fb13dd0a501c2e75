package tenancy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	enov1 "github.com/arbor-control/arbor/api/eno/v1"
	"github.com/arbor-control/arbor/internal/decide/tenancy"
)

func TestAccountOf(t *testing.T) {
	cases := map[string]struct {
		reason          string
		scope           tenancy.Scope
		name, byDefault string
		want            string
	}{
		"Named":       {"The Composition names it.", tenancy.Namespace, "deployer", "other", "system:serviceaccount:team:deployer"},
		"Default":     {"The manager names it.", tenancy.Namespace, "", "deployer", "system:serviceaccount:team:deployer"},
		"None":        {"Without a name there is no account.", tenancy.Namespace, "", "", ""},
		"Cluster":     {"In scope cluster, the manager writes.", tenancy.Cluster, "deployer", "deployer", ""},
		"Other":       {"A name cannot lead to another namespace.", tenancy.Namespace, "x:system:admin", "", ""},
		"Path":        {"Nor be anything but a name.", tenancy.Namespace, "../a", "", ""},
		"NotDefault":  {"A bad name is not replaced by the default.", tenancy.Namespace, "A", "deployer", ""},
		"ZeroIsEmpty": {"The zero value does not restrict.", "", "deployer", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &enov1.Composition{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: enov1.CompositionSpec{ServiceAccountName: tc.name}}
			if got := tc.scope.AccountOf(c, tc.byDefault).Username(); got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func forbidden(text string) error {
	return fmt.Errorf("cannot apply it: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New(text)))
}

// redacted is an error with another text.
type redacted struct {
	error

	text string
}

func (r *redacted) Error() string { return r.text }

func (r *redacted) Unwrap() error { return r.error }

func TestDeny(t *testing.T) {
	account := tenancy.Account{Namespace: "team", Name: "deployer"}
	own := forbidden(`User "system:serviceaccount:team:deployer" cannot patch resource "configmaps" in API group "" in the namespace "team"`)
	manager := `User "system:serviceaccount:arbor-system:arbor-manager" cannot `
	cases := map[string]struct {
		reason  string
		attempt tenancy.Attempt
		err     error
		want    string // the reason, "" for none
		text    string // that the message has
	}{
		"Own":          {"The account may not write in its namespace.", tenancy.Attempt{Namespace: "team"}, own, enov1.ReasonWriteForbidden, "give ServiceAccount team/deployer the permission"},
		"Other":        {"It may not write elsewhere.", tenancy.Attempt{Namespace: "other"}, own, enov1.ReasonOutOfScope, "not in namespace team"},
		"Cluster":      {"Nor without a namespace.", tenancy.Attempt{}, own, enov1.ReasonOutOfScope, "not in namespace team"},
		"Escalation":   {"It may not grant what it does not have.", tenancy.Attempt{Namespace: "team"}, forbidden(`user "system:serviceaccount:team:deployer" (groups=["a"]) is attempting to grant RBAC permissions not currently held`), enov1.ReasonWriteForbidden, ""},
		"Impersonate":  {"The manager may not be the account.", tenancy.Attempt{Namespace: "team"}, forbidden(manager + `impersonate resource "serviceaccounts" in API group "" in the namespace "team"`), enov1.ReasonImpersonationForbidden, "delivery.tenantNamespaces"},
		"Constrained":  {"As Kubernetes 1.36 says it.", tenancy.Attempt{Namespace: "team"}, forbidden(manager + `impersonate-on:serviceaccount:patch resource "configmaps" in API group "" in the namespace "team"`), enov1.ReasonImpersonationForbidden, "impersonate serviceaccounts in namespace team"},
		"NoAccount":    {"There is no account.", tenancy.Attempt{Namespace: "team", Unsent: true}, errors.New("not sent"), enov1.ReasonNoServiceAccount, "set spec.serviceAccountName, or start the manager with --default-service-account"},
		"Delete":       {"A deletion says how to get on.", tenancy.Attempt{Namespace: "team", Deletes: true}, own, enov1.ReasonDeletionForbidden, "or set the annotation eno.azure.io/deletion-strategy: orphan"},
		"Prune":        {"So does a prune.", tenancy.Attempt{Namespace: "team", Deletes: true, Prunes: true}, own, enov1.ReasonDeletionForbidden, "or set the annotation arbor-control.dev/prune: never"},
		"DeleteUnsent": {"Also without an account.", tenancy.Attempt{Namespace: "team", Deletes: true, Unsent: true}, errors.New("not sent"), enov1.ReasonDeletionForbidden, "set spec.serviceAccountName"},
		"Quota":        {"A quota is not a permission.", tenancy.Attempt{Namespace: "team"}, forbidden("exceeded quota: all, requested: pods=1"), "", ""},
		"Webhook":      {"Nor is admission.", tenancy.Attempt{Namespace: "team"}, forbidden(`admission webhook "x" denied the request: no`), "", ""},
		"Redacted":     {"The text does not show the account, because a Secret has its name as a value.", tenancy.Attempt{Namespace: "team"}, &redacted{own, `cannot apply it: User "system:serviceaccount:team:(not shown)" cannot patch`}, enov1.ReasonWriteForbidden, "(not shown)"},
		"Conflict":     {"Other errors are other errors.", tenancy.Attempt{Namespace: "team"}, apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")), "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.attempt.Account = account
			got, denied := tc.attempt.Deny(tc.err)
			if got.Reason != tc.want || denied != (tc.want != "") || !strings.Contains(got.Message, tc.text) {
				t.Errorf("%s\ngot %t %+v, want %q with %q", tc.reason, denied, got, tc.want, tc.text)
			}
			if tc.want != "" && !tc.attempt.Unsent && !strings.Contains(got.Message, tc.err.Error()) {
				t.Errorf("%s\n%q does not have what the server said", tc.reason, got.Message)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	scope, write := tenancy.Denial{Reason: enov1.ReasonOutOfScope, Message: "b"}, tenancy.Denial{Reason: enov1.ReasonWriteForbidden, Message: "a"}
	cases := map[string]struct {
		reason string
		all    []tenancy.Denial
		want   tenancy.Denial
	}{
		"None":  {"There is nothing to say.", nil, tenancy.Denial{}},
		"One":   {"One is reported as it is.", []tenancy.Denial{scope}, scope},
		"Worst": {"The others are counted.", []tenancy.Denial{write, scope, write}, tenancy.Denial{Reason: enov1.ReasonOutOfScope, Message: "b (and 2 more)"}},
		"First": {"The order does not matter.", []tenancy.Denial{{Reason: enov1.ReasonOutOfScope, Message: "c"}, scope}, tenancy.Denial{Reason: enov1.ReasonOutOfScope, Message: "b (and 1 more)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tenancy.Summarize(tc.all)); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemainder(t *testing.T) {
	cases := map[string]struct {
		reason    string
		remainder tenancy.Remainder
		want      string
	}{
		"Waits":     {"It was written, and its namespace stays.", tenancy.Remainder{Recorded: true, Grace: time.Hour}, ""},
		"Unwritten": {"There is nothing to delete.", tenancy.Remainder{Grace: time.Hour}, "never written"},
		"Ending":    {"The namespace controller deletes it.", tenancy.Remainder{Recorded: true, Ending: true, Grace: time.Hour}, "namespace controller"},
		"Home":      {"It is outside of the namespace that ends, which waits for a while.", tenancy.Remainder{Recorded: true, HomeEnding: true, Waited: time.Minute, Grace: time.Hour}, ""},
		"HomeLate":  {"But not forever.", tenancy.Remainder{Recorded: true, HomeEnding: true, Waited: time.Hour, Grace: time.Hour}, "could not be deleted in 1h0m0s"},
		"Orphan":    {"The user has chosen to leave it.", tenancy.Remainder{Recorded: true, Orphan: true, Grace: time.Hour}, "eno.azure.io/deletion-strategy: orphan"},
		"Late":      {"A Composition of a namespace that stays waits.", tenancy.Remainder{Recorded: true, Waited: 2 * time.Hour, Grace: time.Hour}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.remainder.Leave(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
