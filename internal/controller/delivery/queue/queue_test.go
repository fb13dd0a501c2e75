package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	decide "github.com/arbor-control/arbor/internal/decide/delivery"
)

// TestQueueOrder has the order in which workers get the resources of compositions. The
// first letter of each name is the composition.
func TestQueueOrder(t *testing.T) {
	cases := map[string]struct {
		reason string
		failed string // those that failed and whose back-off has ended
		added  string // after these
		want   string
	}{
		"Alone":       {reason: "The resources of one composition keep their order.", added: "a1 a2 a3", want: "a1 a2 a3"},
		"Turns":       {reason: "Compositions take turns.", added: "a1 a2 a3 b1 b2 c1", want: "a1 b1 c1 a2 b2 a3"},
		"Twice":       {reason: "A resource is queued once.", added: "a1 a2 a1 b1 a2", want: "a1 b1 a2"},
		"Failed":      {reason: "Retries of a composition take turns with its other resources.", failed: "a1 a2 a3", added: "a4 a5", want: "a4 a1 a5 a2 a3"},
		"Neighbors":   {reason: "Retries do not delay other compositions.", failed: "a1 a2 a3", added: "b1", want: "b1 a1 a2 a3"},
		"Many failed": {reason: "However many compositions fail.", failed: "a1 b1 c1 c2", added: "d1 e1", want: "d1 a1 e1 b1 c1 c2"},
		"Added again": {reason: "A retry that is added again keeps its place.", failed: "a1 a2", added: "a2 b1", want: "b1 a1 a2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := New(1)
			defer q.ShutDown()
			for i, text := range strings.Fields(tc.failed) {
				q.AddRateLimited(keyOf(text))
				awaitLen(t, q.Len, i+1) // the next one comes after it
			}
			for text := range strings.FieldsSeq(tc.added) {
				q.Add(keyOf(text))
			}
			var got []string
			for q.Len() > 0 {
				k, _ := q.Get()
				q.Done(k)
				got = append(got, k.Object.Name)
			}
			if diff := cmp.Diff(strings.Fields(tc.want), got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func keyOf(name string) Key {
	return Key{types.NamespacedName{Namespace: "n", Name: name[:1]}, decide.Identity{Kind: "ConfigMap", Namespace: "n", Name: name}}
}

// TestQueueShare has workers that are busy for long. In the steps, +a1 adds a resource of namespace
// a, a dot is a worker that gets one, and -a1 is a worker that has done it.
func TestQueueShare(t *testing.T) {
	cases := map[string]struct {
		reason string
		steps  string
		want   string
	}{
		"Alone":    {"While nothing else waits, a namespace gets all workers.", "+a1 +a2 +a3 +a4 +a5 . . . .", "a1 a2 a3 a4"},
		"Slow":     {"A namespace whose resources take long leaves half of the workers to the other one.", "+a1 +a2 +a3 +a4 +b1 +b2 +b3 +b4 . . -b1 . . -b2 . -b3 .", "a1 b1 a2 b2 b3 b4"},
		"Late":     {"One that has all workers gets none of them back while another one waits.", "+a1 +a2 +a3 +a4 +a5 . . . . +b1 +b2 -a1 . -a2 .", "a1 a2 a3 a4 b1 b2"},
		"Goes on":  {"When nothing else waits any more, it gets all of them again.", "+a1 +a2 +a3 +a4 +a5 . . . . +b1 -a1 . -a2 .", "a1 a2 a3 a4 b1 a5"},
		"Third":    {"Each of three gets a worker before one of them gets a second one.", "+a1 +a2 +a3 +b1 +b2 +b3 +c1 +c2 . . . . -c1 .", "a1 b1 c1 a2 c2"},
		"All busy": {"A worker is never idle while something waits.", "+a1 +a2 +a3 +b1 +b2 +b3 . . . . .", "a1 b1 a2 b2 a3"},
		"Others":   {"Those that were passed over keep their turns.", "+a1 +a2 +b1 +b2 +c1 +c2 . . . -b1 -c1 . . .", "a1 b1 c1 b2 c2 a2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := New(4)
			defer q.ShutDown()
			in := func(text string) Key {
				return Key{types.NamespacedName{Namespace: text[:1], Name: "c"}, decide.Identity{Kind: "ConfigMap", Name: text}}
			}
			var got []string
			for step := range strings.FieldsSeq(tc.steps) {
				switch step[0] {
				case '+':
					q.Add(in(step[1:]))
				case '-':
					q.Done(in(step[1:]))
				default:
					k, _ := q.Get()
					got = append(got, k.Object.Name)
				}
			}
			if diff := cmp.Diff(strings.Fields(tc.want), got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// awaitLen waits until a queue has n items.
func awaitLen(t *testing.T, length func() int, n int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return length() == n, nil
	})
	if err != nil {
		t.Fatalf("the queue has %d items, want %d", length(), n)
	}
}
