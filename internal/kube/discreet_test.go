package kube_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/arbor-control/arbor/internal/kube"
)

func TestDiscreet(t *testing.T) {
	secret := func(field string, value any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", field: map[string]any{"a": value}}
	}

	cases := map[string]struct {
		reason string
		object map[string]any
		text   string
		want   string
	}{
		"Plain":     {"A value is not shown.", secret("stringData", "hunter2"), `got "hunter2"`, `got "(not shown)"`},
		"Number":    {"A value of another type is one, too: it is what servers quote.", secret("stringData", int64(123456)), "Value:123456}", "Value:(not shown)}"},
		"Encoded":   {"What is written in base64 is not shown in plain.", secret("data", "aHVudGVyMg=="), "got hunter2, aHVudGVyMg==", "got (not shown), (not shown)"},
		"ToBase64":  {"What is written in plain is not shown in base64.", secret("stringData", "hunter2"), "got aHVudGVyMg==", "got (not shown)"},
		"Quoted":    {"Quoting does not bring it to light.", secret("stringData", "two\nlines"), `got "two\nlines"`, `got "(not shown)"`},
		"Nested":    {"Nor does hiding it deeper.", secret("stringData", []any{map[string]any{"b": "hunter2"}}), "got [hunter2]", "got [(not shown)]"},
		"Contained": {"A shorter value does not uncover a longer one.", map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"a": "hunter", "b": "hunter2"}}, "got hunter2", "got (not shown)"},
		"Short":     {"What is in every text would make it unreadable, and gives nothing away.", secret("stringData", "a"), "cannot say", "cannot say"},
		"Empty":     {"Nothing is nothing.", secret("data", nil), "cannot say", "cannot say"},
		"Other":     {"Other kinds have no secrets.", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "hunter2"}}, "got hunter2", "got hunter2"},
		"OtherKind": {"A kind of somebody else's that has this name is another.", map[string]any{"apiVersion": "example.com/v1", "kind": "Secret", "data": map[string]any{"a": "hunter2"}}, "got hunter2", "got hunter2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := kube.Discreet(errors.New(tc.text), tc.object).Error(); got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}

	if kube.Discreet(nil, secret("data", "aHVudGVyMg==")) != nil {
		t.Error("no error has become one")
	}
	err := kube.Discreet(fmt.Errorf("cannot apply: %w", apierrors.NewBadRequest("got hunter2")), secret("stringData", "hunter2"))
	if !apierrors.IsBadRequest(err) {
		t.Error("it can no longer be asked what the error is")
	}
}
