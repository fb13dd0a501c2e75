package preemption_test

import (
	"testing"

	"github.com/arbor-control/arbor/internal/decide/preemption"
)

func TestInTheWay(t *testing.T) {
	cases := map[string]struct {
		reason string
		pods   []string
		want   string
	}{
		"One":  {"One pod has a sentence of its own.", []string{"a/b"}, "pod a/b is in the way and does not terminate"},
		"Two":  {"The order of the pods does not change the message.", []string{"a/c", "a/b"}, "pods a/b, a/c are in the way and do not terminate"},
		"Many": {"A message stays short.", []string{"1", "2", "3", "4", "5", "6", "7"}, "pods 1, 2, 3, 4, 5 and 2 more are in the way and do not terminate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := preemption.InTheWay(tc.pods); got != tc.want {
				t.Errorf("%s\nThe message is %q, want %q.", tc.reason, got, tc.want)
			}
		})
	}
}
