package command

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestWait tries something that is done after some tries.
func TestWait(t *testing.T) {
	broken := errors.New("no answer")
	cases := map[string]struct {
		reason  string
		timeout time.Duration
		doneAt  int
		errs    map[int]error
		tries   int
		want    error
	}{
		"Once":   {reason: "Without a time it is tried once.", doneAt: 3, tries: 1},
		"Done":   {reason: "What is done is not tried again.", timeout: time.Minute, doneAt: 1, tries: 1},
		"Later":  {reason: "It is tried until it is done.", timeout: time.Minute, doneAt: 3, tries: 3},
		"Broken": {reason: "Errors are passed over while there is time.", timeout: time.Minute, doneAt: 3, errs: map[int]error{1: broken, 2: broken}, tries: 3},
		"Error":  {reason: "Without a time an error is the result.", doneAt: 3, errs: map[int]error{1: broken}, tries: 1, want: broken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tries := 0
			err := waitEvery(t.Context(), tc.timeout, time.Millisecond, func(context.Context) (bool, error) {
				tries++

				return tries == tc.doneAt, tc.errs[tries]
			})
			if !errors.Is(err, tc.want) || tries != tc.tries {
				t.Errorf("%s\n%d tries, %v", tc.reason, tries, err)
			}
		})
	}
	if err := waitEvery(t.Context(), 20*time.Millisecond, time.Millisecond, func(context.Context) (bool, error) { return false, nil }); err != nil {
		t.Errorf("the end of the time is an error: %v", err)
	}
}
