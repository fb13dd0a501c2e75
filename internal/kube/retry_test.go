package kube

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestRetryOnConflict(t *testing.T) {
	late := fmt.Errorf("cannot write: %w", context.DeadlineExceeded)
	cases := map[string]struct {
		reason  string
		answers []error
		want    error
	}{
		"Fine":      {reason: "It is done once.", answers: []error{nil}},
		"Lost":      {reason: "A lost race is run again.", answers: []error{conflict, conflict, nil}},
		"LostEach":  {reason: "But not for ever.", answers: []error{conflict, conflict, conflict, conflict}, want: conflict},
		"Late":      {reason: "The end of a context is an error, and not the end of patience.", answers: []error{late}, want: late},
		"LostLate":  {reason: "Also after a lost race.", answers: []error{conflict, late}, want: late},
		"Cancelled": {reason: "So is that somebody gave up.", answers: []error{context.Canceled}, want: context.Canceled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := 0
			err := RetryOnConflict(t.Context(), func(context.Context) error {
				n++

				return tc.answers[n-1]
			})
			if !errors.Is(err, tc.want) || n != len(tc.answers) {
				t.Errorf("%s\nRetryOnConflict(...): %v after %d attempts", tc.reason, err, n)
			}
		})
	}
}
