package binding

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// acquired returns the names of the requests that have a slot.
func acquired(requests map[string]*slotRequest) map[string]bool {
	got := map[string]bool{}
	for name, request := range requests {
		if request == nil {
			got[name] = true

			continue
		}
		select {
		case <-request.given:
			got[name] = true
		default:
		}
	}

	return got
}

// Who gets a slot that becomes free.
func TestSlots(t *testing.T) {
	cases := map[string]struct {
		reason   string
		requests []string // a namespace for each, in order
		releases []string
		want     []int // the requests that have had a slot in the end
	}{
		"Alone": {
			"A namespace that is alone may use all slots.",
			[]string{"a", "a", "a"},
			nil,
			[]int{0, 1, 2},
		},
		"Full": {
			"There are three.",
			[]string{"a", "a", "a", "b"},
			nil,
			[]int{0, 1, 2},
		},
		"OtherNamespaceFirst": {
			"The request of another namespace does not wait for all that came before it.",
			[]string{"a", "a", "a", "a", "a", "a", "b"},
			[]string{"a"},
			[]int{0, 1, 2, 6},
		},
		"FewestFirst": {
			"A namespace with one slot is before one with two.",
			[]string{"a", "a", "b", "a", "b", "c"},
			[]string{"a", "a"},
			[]int{0, 1, 2, 5, 3},
		},
		"InOrder": {
			"Namespaces that have as many take turns in the order of their requests.",
			[]string{"a", "b", "c", "c", "b"},
			[]string{"a"},
			[]int{0, 1, 2, 3},
		},
		"NoneWaits": {
			"A slot for which no request waits stays free.",
			[]string{"a", "a", "a"},
			[]string{"a", "a", "a"},
			[]int{0, 1, 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, requests, want := newSlots(3), map[string]*slotRequest{}, map[string]bool{}
			for i, namespace := range tc.requests {
				requests[strconv.Itoa(i)] = s.request(namespace)
			}
			for _, namespace := range tc.releases {
				s.release(namespace)
			}
			for _, i := range tc.want {
				want[strconv.Itoa(i)] = true
			}
			if diff := cmp.Diff(want, acquired(requests)); diff != "" {
				t.Errorf("%s\nThe requests with a slot differ (-want +got):\n%s", tc.reason, diff)
			}
			used := 0
			for _, n := range s.used {
				used += n
			}
			if s.free+used != 3 {
				t.Errorf("%s\n%d slots are free and %d in use.", tc.reason, s.free, used)
			}
		})
	}
}

// A request that is canceled leaves no trace, also if it gets its slot at the same time.
func TestSlotsCanceled(t *testing.T) {
	s := newSlots(1)
	if err := s.acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	why := errors.New("canceled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := s.acquire(ctx, "b"); !errors.Is(err, why) {
		t.Errorf("The error is %v.", err)
	}
	given := s.request("b")
	s.release("a")
	s.withdraw("b", given) // it has the slot by now
	if s.free != 1 || len(s.used) > 0 || len(s.waiting) > 0 {
		t.Errorf("%d slots are free, %v are in use, %v wait.", s.free, s.used, s.waiting)
	}
}
