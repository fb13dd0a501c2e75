package command

import (
	"errors"
	"testing"
)

func TestExitError(t *testing.T) {
	inner := errors.New("x")
	if e := (&ExitError{Code: 2, Err: inner}); e.Error() != "x" || !errors.Is(e, inner) {
		t.Errorf("got %v, want the error inside", e)
	}
}
